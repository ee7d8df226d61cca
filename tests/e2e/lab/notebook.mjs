// What a data scientist does: print, table, figure, widgets, progress bar, input.
import { check, main } from './page.mjs';

await main(async (lab) => {
	await lab.run(0);
	await lab.shows(0, 'hello from the container');

	await lab.run(1);
	const table = lab.output(1).locator('table');
	await table.waitFor();
	check((await table.innerText()).includes('NaN'), 'the table has its missing value');

	await lab.run(2);
	const picture = lab.output(2).locator('img').first();
	await picture.waitFor();
	const size = await picture.evaluate(
		(i) => i.decode().then(() => [i.naturalWidth, i.naturalHeight]));
	check(size[0] > 100 && size[1] > 100, `figure of ${size}`);
	check(!(await lab.text(2)).includes('Glyph'), 'no glyph is missing');
	await picture.scrollIntoViewIfNeeded();
	await lab.shot('figure');

	// The slider's value goes to the kernel and its answer comes back.
	await lab.run(3);
	const slider = lab.output(3).locator('.widget-slider');
	await slider.waitFor();
	const handle = slider.locator('.noUi-handle').first();
	await handle.click();
	for (let k = 0; k < 5; k++)
		await lab.page.keyboard.press('ArrowRight');
	await lab.shows(3, 'squared 64');
	await lab.shot('slider', 3);

	// Bytes from the kernel cannot pass Jupyter Server's proxy, which takes text only and goes deaf on
	// anything else: the page is told, the cell ends and the next ones run. (The same bytes on a
	// direct connection: test_clients.py, client_services.mjs.)
	await lab.run(4);
	await lab.shows(4, 'binary data of widgets cannot pass');
	// Bytes to the kernel do pass: a file chosen in the page arrives whole.
	await lab.run(5);
	const chooser = lab.page.waitForEvent('filechooser');
	await lab.output(5).locator('button.widget-upload, .widget-upload').first().click();
	await (await chooser).setFiles({ name: 'up.bin', mimeType: 'application/octet-stream',
		buffer: Buffer.from(Array.from({ length: 256 }, (_, k) => k)) });
	await lab.shows(5, 'got up.bin 256 32640');
	await lab.shot('buffers', 5);

	await lab.run(6);
	await lab.shows(6, '100%');
	await lab.shot('tqdm', 6);

	await lab.start(7);
	const field = lab.cell(7).locator('.jp-Stdin-input');
	await field.waitFor();
	await field.fill('Zoë 🧪');
	await lab.page.keyboard.press('Enter');
	await lab.ended(7);
	await lab.shows(7, 'hello Zoë 🧪');
	await lab.shot('input', 7);
	check(lab.problems.length === 0, 'errors in the page: ' + lab.problems.join('\n'));
});
