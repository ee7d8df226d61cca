"""jupyter_kernel_test's own suite, against our kernel through the gateway with Jupyter Server's
GatewayKernelManager. Left out: IopubWelcomeTests, which starts a local process."""

import jupyter_kernel_test
import pytest
from jupyter_core.utils import run_sync

from gateway import ALICE
from gateway_client import Manager, point_at


class Blocking:
    """The suite calls a client that blocks; the gateway's is asynchronous."""

    def __init__(self, kc):
        self._kc = kc

    def __getattr__(self, name):
        value = getattr(self._kc, name)
        if name.startswith("get_") and name.endswith("_msg"):
            return run_sync(value)
        return value


@pytest.fixture(scope="class")
def kernel_of_the_suite(request, docker_gateway):
    point_at(docker_gateway.url, ALICE)
    manager = Manager(kernel_name=request.cls.kernel_name)
    run_sync(manager.start_kernel)()
    kc = manager.client()
    run_sync(kc.start_channels)()
    run_sync(kc.wait_for_ready)(timeout=60)
    request.cls.km, request.cls.kc = manager, Blocking(kc)
    yield
    kc.stop_channels()
    run_sync(manager.shutdown_kernel)()


@pytest.mark.usefixtures("kernel_of_the_suite")
class TestKernel(jupyter_kernel_test.KernelTests):
    kernel_name = "python3"
    language_name = "python"
    file_extension = ".py"
    code_hello_world = "print('hello, world')"
    code_stderr = "import sys; print('test', file=sys.stderr)"
    completion_samples = [
        {"text": "zi", "matches": {"zip"}},
        {"text": "importlib_not_here", "matches": set()},
    ]
    complete_code_samples = ["1", "print('hello, world')", "def f(x):\n  return x*2\n\n\n"]
    incomplete_code_samples = ["print('''hello", "def f(x):\n  x*2"]
    invalid_code_samples = ["import = 7q"]
    code_page_something = "zip?"
    code_generate_error = "raise"
    code_execute_result = [
        {"code": "1+2+3", "result": "6"},
        {"code": "[n*n for n in range(1, 4)]", "result": "[1, 4, 9]"},
    ]
    code_display_data = [
        {"code": "from IPython.display import HTML, display; display(HTML('<b>test</b>'))",
         "mime": "text/html"},
        {"code": "from IPython.display import Math, display; display(Math('\\\\frac{1}{2}'))",
         "mime": "text/latex"},
    ]
    supported_history_operations = ("tail", "range", "search")
    code_history_pattern = "1?2*"

    def history_helper(self, codes, **kwargs):
        """IPython calls the running session 0 in the answer to a range, whatever it was asked for;
        the suite of ipykernel itself leaves `range` out for it."""
        reply = super().history_helper(codes, **kwargs)
        if kwargs.get("hist_access_type") == "range":
            for entry in reply["content"]["history"]:
                assert entry[0] == 0, entry
                entry[0] = kwargs["session"]
        return reply

    code_inspect_sample = "zip"
    code_clear_output = "from IPython.display import clear_output; clear_output()"

    @classmethod
    def setUpClass(cls):
        """The fixture starts the kernel."""

    @classmethod
    def tearDownClass(cls):
        """The fixture ends it."""


@pytest.mark.usefixtures("kernel_of_the_suite")
class TestNewestKernel(TestKernel):
    kernel_name = "newest"


