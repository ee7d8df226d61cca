// @jupyterlab/services from npm against a gateway: specs, kernel, comm, input, interrupt, restart,
// session. Usage: client_services.mjs URL TOKEN v1|legacy. Last line of stdout: what was seen.
import { createRequire } from 'node:module';

const require = createRequire(process.env.COPPICE_NODE_MODULES + '/');
const WebSocket = require('ws');
const { ServerConnection, KernelManager, KernelSpecManager, SessionManager, KernelMessage } =
	require('@jupyterlab/services');

const [url, token, framing] = process.argv.slice(2);
const seen = { statuses: [] };

// The same library with and without the offer of v1.
class Socket extends WebSocket {
	constructor(address, protocols) {
		super(address, framing === 'v1' ? protocols : []);
		this.addEventListener('open', () => { seen.protocol = this.protocol; });
	}
}

const serverSettings = ServerConnection.makeSettings({
	baseUrl: url + '/', wsUrl: url.replace(/^http/, 'ws') + '/', token, appendToken: true,
	WebSocket: Socket, fetch, Request, Headers,
});

const within = (promise, what, ms = 60000) => Promise.race([
	promise,
	new Promise((_, fail) => setTimeout(() => fail(new Error('no ' + what)), ms).unref()),
]);

async function execute(kernel, code, options = {}) {
	const out = { stdout: '', result: null, error: null };
	const future = kernel.requestExecute({ code, ...options.content });
	future.onIOPub = (m) => {
		if (m.header.msg_type === 'stream' && m.content.name === 'stdout')
			out.stdout += m.content.text;
		if (m.header.msg_type === 'execute_result')
			out.result = m.content.data['text/plain'];
		if (m.header.msg_type === 'error')
			out.error = m.content.ename;
		options.onIOPub?.(m);
	};
	if (options.onStdin)
		future.onStdin = (m) => options.onStdin(m, future);
	await within(future.done, 'end of ' + code);
	return out;
}

async function comm(kernel) {
	await execute(kernel, [
		'from comm import get_comm_manager',
		'def opened(c, m):',
		'    c.on_msg(lambda m: c.send({"echo": m["content"]["data"]}, buffers=m["buffers"]))',
		'get_comm_manager().register_target("echo", opened)'].join('\n'));
	const c = kernel.createComm('echo');
	const back = new Promise((done) => { c.onMsg = done; });
	c.open({});
	c.send({ n: 1 }, undefined, [new Uint8Array([0, 1, 254, 255]).buffer]);
	const m = await within(back, 'echo');
	const view = m.buffers[0];
	const bytes = ArrayBuffer.isView(view)
		? new Uint8Array(view.buffer, view.byteOffset, view.byteLength) : new Uint8Array(view);
	return { ...m.content.data, buffer: [...bytes] };
}

async function interrupt(kernel) {
	const out = await execute(kernel, 'import time\nprint("on", flush=True)\ntime.sleep(60)', {
		onIOPub: (m) => {
			if (m.header.msg_type === 'stream')
				kernel.interrupt();
		},
	});
	return out.error;
}

async function main() {
	const specs = new KernelSpecManager({ serverSettings });
	await specs.ready;
	seen.specs = { default: specs.specs.default, names: Object.keys(specs.specs.kernelspecs) };

	const kernelManager = new KernelManager({ serverSettings });
	await kernelManager.ready;
	const sessionManager = new SessionManager({ kernelManager, serverSettings });
	const session = await sessionManager.startNew({
		name: '', path: `s-${process.pid}.ipynb`, type: 'notebook', kernel: { name: 'python3' },
	});
	const kernel = session.kernel;
	kernel.statusChanged.connect((_, status) => seen.statuses.push(status));
	await within(kernel.info, 'kernel info');

	seen.stdout = (await execute(kernel, 'print("hello")')).stdout;
	seen.result = (await execute(kernel, '6 * 7')).result;
	seen.input = (await execute(kernel, 'print("answer:", input("q"))', {
		content: { allow_stdin: true },
		onStdin: (m, future) => future.sendInputReply({ value: 'yes', status: 'ok' }, m.header),
	})).stdout;
	seen.comm = await comm(kernel);
	seen.interrupted = await interrupt(kernel);
	await execute(kernel, 'kept = 1');
	await within(kernel.restart(), 'restart');
	seen.afterRestart = (await execute(kernel, '"kept" in dir()')).result;
	await session.setPath('renamed.ipynb');
	seen.sessionPath = session.path;
	await sessionManager.refreshRunning();
	await session.shutdown();
	sessionManager.dispose();
	kernelManager.dispose();
	specs.dispose();
	console.log(JSON.stringify(seen));
	process.exit(0);
}

main().catch((e) => { console.error(e, JSON.stringify(seen)); process.exit(1); });
