// The history of a kernel from its own notebook: looked at, moved, and a secret taken out of it.
import { check, main } from './page.mjs';

const SECRET = 'sk-4f1d9c77e0';

await main(async (lab) => {
	for (let k = 0; k < 4; k++)
		await lab.run(k);

	await lab.run(4);
	const log = lab.output(4).locator('table');
	await log.waitFor();
	const rows = await log.locator('tr').allInnerTexts();
	check(rows.length === 6, `a head, four cells and the root: ${rows.length}`);
	check(rows[1].includes('1/0') && rows[1].includes('error'), `newest first: ${rows[1]}`);
	check(rows[1].includes('main'), 'the tip names its branch');
	check((await lab.text(4)).includes(SECRET), 'the secret is in the log');
	check((await log.innerText()).includes('<script>'), 'code is shown as it is');
	await lab.shot('log', 4);

	await lab.run(5);
	await lab.output(5).locator('table').first().waitFor();
	check((await lab.text(5)).includes('DataFrame'), 'variables of the cell');
	check((await lab.text(5)).includes('北京'), 'what the cell showed');
	await lab.shot('show', 5);

	await lab.run(6);
	check((await lab.output(6).locator('table').innerText()).includes('main'), 'where it stands');
	await lab.shot('status', 6);

	await lab.run(7);
	await lab.shows(7, 'Forgotten');
	check(!(await lab.text(7)).includes(SECRET), 'it is not said again');
	await lab.shot('forget', 7);

	// The log that was drawn before had it, too.
	check((await lab.text(7)).includes('%coppice log or show may have drawn it in'), 'is told');
	await lab.run(8);
	await lab.shows(8, 'Forgotten');

	await lab.run(9);
	await lab.output(9).locator('table').waitFor();
	const after = await lab.text(9);
	check(after.includes('(forgotten)') && !after.includes(SECRET), after);
	await lab.shot('log-after', 9);

	await lab.run(10);
	check((await lab.text(10)).includes('<img src=x'), 'an output is shown as text');

	await lab.run(11);
	await lab.shows(11, 'walk');
	await lab.run(12);
	await lab.shows(12, 'walk');
	await lab.shot('use', 12);
	check(await lab.page.evaluate(() => window.ran) === undefined, 'nothing of it runs');
	check(lab.problems.length === 0, 'errors in the page: ' + lab.problems.join('\n'));
	return { log: rows.length };
});
