"""The other servers, each with its usual settings, and why one is missing."""

import contextlib
import sys

import kit
from server import Server

ENTERPRISE = str(kit.VENVS / "enterprise" / "bin" / "python")


class Jupygate(Server):
    """No kernelspecs, so it gets the command itself; no v1."""

    framings = ("legacy",)
    alive = "/api/kernels"

    def spec(self, kernel):
        return {"argv": kit.ARGV[kernel]}


class Enterprise(Server):
    """Does not start kernels for root; whom it takes for the user, the request may say."""

    def spec(self, kernel):
        return {"name": kernel, "env": {"KERNEL_USERNAME": "bench"}}


def jupyter_server(home):
    return Server("jupyter-server", [
        sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root", "--port={port}",
        "--ip=127.0.0.1", "--IdentityProvider.token={token}", f"--ServerApp.root_dir={home}"], home)


def kernel_gateway(home):
    return Server("kernel-gateway", [
        sys.executable, "-m", "kernel_gateway", "--KernelGatewayApp.port={port}",
        "--KernelGatewayApp.ip=127.0.0.1", "--KernelGatewayApp.auth_token={token}"], home)


def enterprise_gateway(home):
    return Enterprise("enterprise-gateway", [
        ENTERPRISE, "-m", "enterprise_gateway", "--EnterpriseGatewayApp.port={port}",
        "--EnterpriseGatewayApp.ip=127.0.0.1", "--EnterpriseGatewayApp.port_retries=0",
        "--EnterpriseGatewayApp.auth_token={token}"], home)


def jupygate(home):
    # Its command line serves from the child of a reloader; this is the other way that it documents.
    return Jupygate("jupygate", [
        sys.executable, "-c", "import sys; from jupygate.core import create_app, serve; "
        "serve(create_app(auth_token=sys.argv[2]), port=int(sys.argv[1]))", "{port}", "{token}"],
        home)


MAKERS = {"jupyter-server": jupyter_server, "kernel-gateway": kernel_gateway,
          "enterprise-gateway": enterprise_gateway, "jupygate": jupygate}


@contextlib.contextmanager
def all_of(run):
    """Those that start, of those that were asked for; the others' reasons go to run.missing."""
    with contextlib.ExitStack() as stack:
        out = []
        for name in run.peers:
            if name in run.missing:
                continue
            failed = kit.VENVS / f"{name}.failed"
            try:
                if failed.exists():
                    raise RuntimeError(failed.read_text().strip())
                out.append(stack.enter_context(MAKERS[name](run.home)))
            except (RuntimeError, OSError) as e:
                run.miss(name, e)
        yield out
