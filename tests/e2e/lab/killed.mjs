// The gateway is killed in the middle of a cell; the test starts another.
import { check, main } from './page.mjs';

await main(async (lab, { gateway }) => {
	await lab.start(0);
	await lab.shows(0, 'tick 5.');
	process.kill(gateway, 'SIGKILL');
	await lab.ended(0);
	await lab.status('idle');
	const ticks = [...(await lab.text(0)).matchAll(/tick (\d+)\./g)].map((m) => Number(m[1]));
	check(ticks.every((n, i) => n === i), `ticks ${ticks}`);
	await lab.shot('gateway', 0);
	await lab.run(1);
	await lab.shows(1, 'after the kill 100');
	return { ticks: ticks.length };
});
