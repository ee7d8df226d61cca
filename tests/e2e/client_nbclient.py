"""Runs a notebook with nbclient through Jupyter Server's GatewayKernelManager; prints the result.
Usage: client_nbclient.py URL TOKEN"""

import asyncio
import sys

import nbformat
from nbclient import NotebookClient

from gateway_client import Manager, point_at

url, token = sys.argv[1:3]
point_at(url, token)

cells = [
    "print('hello')",
    "import pandas as pd\npd.DataFrame({'a': [1, 2]})",
    "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()",
    "1/0",
    "6 * 7",
]
notebook = nbformat.v4.new_notebook(
    cells=[nbformat.v4.new_code_cell(c) for c in cells],
    metadata={"kernelspec": {"name": "python3", "display_name": "", "language": "python"}})


async def main():
    manager = Manager(kernel_name="python3")
    client = NotebookClient(notebook, km=manager, timeout=90, allow_errors=True, iopub_timeout=30)
    async with client.async_setup_kernel():
        for index, cell in enumerate(notebook.cells):
            await client.async_execute_cell(cell, index)
    await manager.shutdown_kernel()


asyncio.run(main())
print(nbformat.writes(notebook))
