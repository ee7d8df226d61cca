// What goes wrong through other gateways: interrupt, restart, reload mid-cell, flood, death.
import { check, main } from './page.mjs';

const lines = (text, word) => (text.match(new RegExp(`^${word} \\d+$`, 'gm')) ?? []).length;

await main(async (lab) => {
	// Interrupt of a long cell, from the menu.
	await lab.start(0);
	await lab.shows(0, 'asleep');
	await lab.status('busy');
	await lab.command('Kernel', 'Interrupt Kernel');
	await lab.shows(0, 'KeyboardInterrupt');
	await lab.status('idle');
	await lab.shot('interrupt', 0);

	// Restart, from the menu; the next cell runs on a new kernel.
	await lab.run(1);
	await lab.command('Kernel', 'Restart Kernel…');
	await lab.page.locator('.jp-Dialog button.jp-mod-accept').click();
	await lab.status('idle');
	await lab.run(2);
	await lab.shows(2, 'kept: False');
	await lab.shot('restart', 2);

	// A reload in the middle of a cell: no line is lost, the indicator is right at once.
	await lab.start(3);
	await lab.shows(3, 'tick 5');
	await lab.command('File', 'Save Notebook');
	await lab.page.reload();
	await lab.ready('busy');
	await lab.status('idle');
	await lab.run(4);
	await lab.shows(4, 'after the reload 50');
	await lab.shot('reload', 4);

	// 20,000 lines: all of them, and the cell ends.
	await lab.run(5);
	await lab.status('idle');
	await lab.run(6);
	await lab.shows(6, 'flood is over');
	const flood = await lab.page.evaluate(() => {
		const cells = document.querySelectorAll('.jp-NotebookPanel:not(.lm-mod-hidden) .jp-Cell');
		return cells[5].querySelector('.jp-OutputArea').textContent;
	});
	await lab.shot('flood', 6);

	// A kernel that ends itself: the page comes back by itself and the next cell runs.
	await lab.start(7);
	await lab.page.locator('.jp-Dialog button.jp-mod-accept').first().click();
	await lab.status('idle');
	await lab.run(8);
	await lab.shows(8, 'alive again');
	await lab.shot('exit', 8);
	return { flood: lines(flood.replace(/(line \d+)/g, '$1\n'), 'line') };
});
