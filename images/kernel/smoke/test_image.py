"""What is in the image, and what is not."""

PACKAGES = "ipykernel numpy pandas matplotlib sklearn requests openpyxl ipywidgets tqdm pip debugpy"
FORBIDDEN = "curl wget nc ncat telnet ssh scp ftp gcc g++ cc clang make ld as gdb apt apt-get sudo su mount"


def test_expected_packages_import(kernel):
    out = kernel.run(
        f"import importlib\nfor n in '{PACKAGES}'.split():\n"
        "    m = importlib.import_module(n); print(n, getattr(m, '__version__', '?'))"
    )
    print(out)
    assert len(out.splitlines()) == len(PACKAGES.split())


def test_no_network_tools_and_no_compilers(kernel):
    out = kernel.run(f"import shutil\nprint([n for n in '{FORBIDDEN}'.split() if shutil.which(n)])")
    assert out == "[]\n"


def test_no_file_gives_rights(kernel):
    out = kernel.run(
        "import subprocess\n"
        "print(subprocess.run(['find', '/usr', '/etc', '-perm', '/6000'],"
        " capture_output=True, text=True).stdout)"
    )
    assert out.strip() == ""


def test_every_library_finds_its_libraries(kernel):
    out = kernel.run(
        "import subprocess\n"
        "r = subprocess.run(\"find /usr -name '*.so*' -type f | xargs ldd 2>/dev/null"
        " | grep 'not found' | sort -u\", shell=True, capture_output=True, text=True)\n"
        "print(r.stdout)"
    )
    assert out.strip() == ""


def test_user_home_and_folder(kernel):
    out = kernel.run(
        "import getpass, os, pathlib\n"
        "print(getpass.getuser(), os.getuid(), pathlib.Path.home(), os.getcwd(),"
        " os.environ['LOGNAME'])"
    )
    assert out.split() == ["coppice", "1000", "/home/coppice", "/work", "coppice"]


def test_root_is_read_only_and_the_three_folders_are_not(kernel):
    out = kernel.run(
        "import os\n"
        "for d in ('/', '/usr', '/etc', '/run/coppice', '/work', '/tmp', '/home/coppice'):\n"
        "    try:\n"
        "        open(d + '/probe', 'w').close(); print(d)\n"
        "    except OSError as e: pass"
    )
    assert out.split() == ["/work", "/tmp", "/home/coppice"]


DRAW = """
import time, warnings
warnings.simplefilter('error')
import logging
class Fail(logging.Handler):
    def emit(self, record): raise RuntimeError(record.getMessage())
logging.getLogger('matplotlib.font_manager').addHandler(Fail())
t = time.perf_counter()
import matplotlib.pyplot as plt, numpy as np, io
{settings}
def draw(text):
    fig, ax = plt.subplots(); ax.set_title(text); ax.set_xlabel('x -1'); ax.plot([-1, 2])
    fig.canvas.draw(); a = np.asarray(fig.canvas.buffer_rgba()).copy(); plt.close(fig)
    return a
a, b = draw('中文标签'), draw('日本語字')
assert (a != b).any(), 'both are boxes'
print(round(time.perf_counter() - t, 2))
"""


def test_chinese_labels_are_drawn(kernel):
    assert float(kernel.run(DRAW.format(settings=""))) > 0


def test_chinese_labels_under_the_names_that_programs_use(kernel):
    for name in ("SimHei", "Microsoft YaHei", "Noto Sans CJK SC"):
        kernel.run(DRAW.format(settings=f"plt.rcParams['font.sans-serif'] = ['{name}']"))


def test_a_figure_becomes_a_picture(kernel):
    reply, seen = kernel.execute("import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()")
    assert reply["status"] == "ok"
    kinds = [set(m["content"]["data"]) for m in seen if m["header"]["msg_type"] == "display_data"]
    assert len(kinds) == 1 and "image/png" in kinds[0]


REFUSED = """
import ctypes, errno, socket
libc = ctypes.CDLL(None, use_errno=True)
calls = dict(ptrace=101, mount=165, add_key=248, keyctl=250, unshare=272, perf_event_open=298,
    setns=308, process_vm_readv=310, bpf=321, userfaultfd=323, io_uring_setup=425, kexec_load=246,
    open_by_handle_at=304, clone_newuser=56, fsopen=430, pidfd_getfd=438)
for name, number in calls.items():
    libc.syscall(number, 0x10000000, 0, 0, 0, 0, 0)
    if ctypes.get_errno() != errno.EPERM: print(name, ctypes.get_errno())
libc.syscall(435, 0, 0)
if ctypes.get_errno() != errno.ENOSYS: print('clone3')
for family in ('AF_VSOCK', 'AF_ALG', 'AF_PACKET', 'AF_CAN', 'AF_TIPC'):
    try: socket.socket(getattr(socket, family), socket.SOCK_STREAM); print(family)
    except PermissionError: pass
for family in ('AF_INET', 'AF_INET6', 'AF_UNIX', 'AF_NETLINK'):
    socket.socket(getattr(socket, family), socket.SOCK_DGRAM).close()
print(libc.personality(0x0040000))
"""


def test_seccomp_refuses_what_it_should(kernel):
    assert kernel.run(REFUSED) == "-1\n"
