// One JupyterLab page in Chromium. Waits are on what the page shows, never on time.
import { createRequire } from 'node:module';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const require = createRequire(process.env.COPPICE_NODE_MODULES + '/');
const { chromium } = require('playwright-core');

export const PATIENCE = 30000 * Number(process.env.COPPICE_E2E_SLACK ?? 1);

export class Page {
	static async open({ url, token, notebook, shots, name }) {
		const self = new Page();
		Object.assign(self, { url, token, notebook, shots, name, problems: [] });
		self.profile = mkdtempSync(join(tmpdir(), 'coppice-chromium-'));
		self.context = await chromium.launchPersistentContext(self.profile, {
			executablePath: process.env.COPPICE_CHROMIUM ?? '/usr/bin/chromium',
			headless: true,
			viewport: { width: 1280, height: 1000 },
			args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking',
				'--disable-quic', '--no-first-run', '--disable-dev-shm-usage',
				'--disable-component-update', '--disable-sync'],
		});
		self.page = self.context.pages()[0] ?? await self.context.newPage();
		self.page.setDefaultTimeout(PATIENCE);
		self.page.on('pageerror', (e) => self.problems.push(String(e)));
		// On a slow first load JupyterLab asks for a kernel before it knows the kernelspecs, sooner
		// or later, and starts the notebook's own all the same. Whatever is clicked next, it is
		// answered first.
		await self.page.addLocatorHandler(
			self.page.locator('.jp-Dialog', { hasText: 'Select kernel for' }),
			(dialog) => self.answerSelect(dialog));
		await self.load();
		return self;
	}

	async load() {
		await this.page.goto(`${this.url}/lab/tree/${this.notebook}?token=${this.token}&reset`);
		await this.ready();
	}

	// As a person would: with the notebook's own.
	async answerSelect(dialog) {
		await dialog.locator('select').selectOption({ label: 'Python 3 (ipykernel)' });
		await dialog.locator('button.jp-mod-accept').click();
		await dialog.waitFor({ state: 'detached' });
		await this.ready();
	}

	// The notebook is there and the kernel's indicator says Idle (or another state).
	async ready(state = 'idle') {
		await this.page.waitForSelector('.jp-NotebookPanel:not(.lm-mod-hidden) .jp-Cell');
		await this.status(state);
	}

	// The indicator in the notebook's tool bar.
	async status(state) {
		await this.page.waitForFunction((wanted) => {
			const dot = document.querySelector(
				'.jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook-ExecutionIndicator');
			return dot && dot.getAttribute('data-status') === wanted;
		}, state);
	}

	cell(index) {
		return this.page.locator('.jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook .jp-Cell')
			.nth(index);
	}

	output(index) {
		return this.cell(index).locator('.jp-OutputArea-output');
	}

	// The [n] before a cell; '*' while it runs.
	prompt(index) {
		return this.cell(index).locator('.jp-InputPrompt');
	}

	async select(index) {
		await this.cell(index).locator('.jp-InputPrompt').click();
		await this.cell(index).and(this.page.locator('.jp-mod-active')).waitFor();
	}

	// Lab itself writes the star, whatever the kernel does: without it the key met no notebook (it
	// is deaf for a moment after it was drawn), and is pressed again.
	async start(index) {
		const before = await this.prompt(index).textContent();
		for (let tries = 0; tries < 10; tries++) {
			await this.select(index);
			await this.page.keyboard.press('Control+Enter');
			const begun = await this.page.waitForFunction(([i, was]) => {
				const cells = document.querySelectorAll(
					'.jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook .jp-Cell');
				return cells[i]?.querySelector('.jp-InputPrompt')?.textContent !== was;
			}, [index, before], { timeout: 3000 }).catch(() => null);
			if (begun)
				return;
		}
		throw new Error(`cell ${index} does not begin`);
	}

	async ended(index) {
		await this.page.waitForFunction((i) => {
			const cells = document.querySelectorAll(
				'.jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook .jp-Cell');
			const text = cells[i]?.querySelector('.jp-InputPrompt')?.textContent ?? '';
			return /\[\d+\]/.test(text);
		}, index);
	}

	async run(index) {
		await this.start(index);
		await this.ended(index);
	}

	async shows(index, text) {
		await this.output(index).filter({ hasText: text }).first().waitFor({ state: 'attached' });
	}

	async text(index) {
		return (await this.output(index).allTextContents()).join('');
	}

	async command(menu, item) {
		await this.page.locator('.lm-MenuBar-itemLabel', { hasText: menu }).first().click();
		await this.page.locator('.lm-Menu-itemLabel', { hasText: item }).first().click();
	}

	async shot(what, index) {
		if (index !== undefined)
			await this.output(index).last().scrollIntoViewIfNeeded();
		await this.page.screenshot({ path: join(this.shots, `${this.name}-${what}.png`) });
	}

	async close() {
		await this.context.close();
		rmSync(this.profile, { recursive: true, force: true });
	}
}

export function check(condition, what) {
	if (!condition)
		throw new Error(what);
}

// Opens the page of argv's JSON, runs `steps` on it, prints what it returns; a failure leaves a
// shot.
export async function main(steps) {
	const options = JSON.parse(process.argv[2]);
	const lab = await Page.open(options);
	let code = 0;
	try {
		console.log(JSON.stringify(await steps(lab, options) ?? {}));
	} catch (e) {
		console.error(e, lab.problems.join('\n'));
		await lab.shot('failed');
		code = 1;
	}
	await lab.close();
	process.exit(code);
}
