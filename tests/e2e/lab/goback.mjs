// Ten cells, back to the fourth, on from there, and the last step undone: told at each step what came
// back and what did not.
import { check, main, PATIENCE } from './page.mjs';

const CHECKOUT = 10, LOOK = 11, MORE = 12, UNDO = 13, AFTER = 14, LOG = 15;

// A person pauses. Here it is waited for until the state that a cell left is kept.
async function kept(lab, { gateway, token, gatewayToken, notebook }, count) {
	const ask = async (url, secret) =>
		(await fetch(url, { headers: { Authorization: `token ${secret}` } })).json();
	const end = Date.now() + PATIENCE;
	for (;;) {
		const session = (await ask(`${lab.url}/api/sessions`, token)).find((s) => s.path === notebook);
		const node = await ask(
			`${gateway}/history/${session.kernel.id}/nodes/In%5B${count}%5D`, gatewayToken);
		if (node.restorable_by?.includes('parked'))
			return;
		check(Date.now() < end, `In[${count}] is not parked: ${JSON.stringify(node)}`);
		await new Promise((resolve) => setTimeout(resolve, 50));
	}
}

const prompt = async (lab, index) => (await lab.prompt(index).textContent()).trim();

await main(async (lab, options) => {
	for (let k = 0; k < CHECKOUT; k++) {
		await lab.run(k);
		await kept(lab, options, k + 1);
	}
	await lab.shows(9, 'now: 100 in 9 five new');
	await lab.shot('ten-cells', 9);

	// Back: below its cell it is said where to, which cells this kernel does not know any more, and
	// what is not as it was.
	await lab.run(CHECKOUT);
	await lab.shows(CHECKOUT, 'Gone back to In[4]');
	await lab.status('idle');
	const told = await lab.text(CHECKOUT);
	check(told.includes('Once this cell has ended the kernel goes back to In[4]'), told);
	check(told.includes('The next cell is In[5], on branch main.2'), told);
	check(/In\[5\] to In\[1[01]\]/.test(told), `which cells are left behind: ${told}`);
	check(/near \(socket\): .*opened again/.test(told), `what did not come back: ${told}`);
	for (const name of ['double', 'numbers', 'lines', 'sales'])
		check(!told.includes(`${name} (`), `${name} came back: ${told}`);
	await lab.shot('checkout', CHECKOUT);

	// On from there: lambda, generator, open file, table, random numbers.
	await lab.run(LOOK);
	await lab.shows(LOOK, "then: 42 3 'two\\n' 9 0.323833 False");
	check(await prompt(lab, LOOK) === '[5]:', 'the count goes on');
	await kept(lab, options, 5);
	await lab.shot('goes-on', LOOK);

	await lab.run(MORE);
	await lab.shows(MORE, 'factor is 7');
	await kept(lab, options, 6);

	// The last step undone.
	await lab.run(UNDO);
	await lab.shows(UNDO, 'Gone back to In[5]');
	await lab.status('idle');
	check((await lab.text(UNDO)).includes('The next cell is In[6]'), await lab.text(UNDO));
	await lab.shot('undo', UNDO);
	await lab.run(AFTER);
	await lab.shows(AFTER, "undone: 4 'three\\n' 4");
	check(await prompt(lab, AFTER) === '[6]:', 'the count of before');

	await lab.run(LOG);
	const tables = lab.output(LOG).locator('table'); // executions, and branches
	await tables.last().waitFor();
	const rows = (await tables.allInnerTexts()).join('\n');
	for (const word of ['main.2', 'main.3', 'exact', 'partial'])
		check(rows.includes(word), `${word} in the log: ${rows}`);
	await lab.shot('log', LOG);
	check(lab.problems.length === 0, 'errors in the page: ' + lab.problems.join('\n'));
	return { told };
});
