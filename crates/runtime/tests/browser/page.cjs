// Opens the page in a browser, as whoever is on call does.
//
// node page.cjs ADDRESS TOKEN FOLDER: prints `passed` if all holds. Screenshots go into the folder.
"use strict";
const assert = require("node:assert/strict");
const path = require("node:path");
const { chromium } = require("playwright-core");
const axe = require("axe-core");

const [address, token, folder] = process.argv.slice(2);
const STUCK = "map-4321";

/// What a person with a keyboard or a screen reader would stumble over.
async function accessible(page, what) {
  // The page lets no script run but its own, so this one comes in through the debugger.
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => window.axe.run());
  const told = violations.map((one) => `${one.id}: ${one.help}: ${one.nodes.map((node) => node.html).join(" ")}`);
  assert.deepEqual(told, [], what);
}

async function main() {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync", "--disable-quic"],
  });
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    // The browser itself tells of each answer that refuses something.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) complaints.push(message.text());
  });
  const elsewhere = [];
  page.on("request", (request) => {
    if (!request.url().startsWith(address) && !request.url().startsWith("data:")) elsewhere.push(request.url());
  });
  await page.goto(address);
  await page.getByRole("status").filter({ hasText: /^ready$/ }).waitFor();
  await page.locator("#failing").getByText("the disk is full").waitFor();
  assert.match(await page.locator("#units").innerText(), /5000/);
  await accessible(page, "the page at first");

  // With the keyboard alone: find the object, and look at it.
  await page.getByLabel("Part of namespace/name").focus();
  await page.keyboard.type(STUCK);
  await page.keyboard.press("Enter");
  const found = page.locator("#found").getByRole("button", { name: STUCK });
  await found.focus();
  await page.keyboard.press("Enter");
  const object = page.locator("#object");
  await object.getByRole("heading", { name: STUCK }).waitFor();
  const facts = await object.innerText();
  assert.match(facts, /the disk is full/);
  assert.match(facts, /next run in (60 min|1\.0 h)/);
  assert.match(facts, /1 failures in a row/);
  assert.equal(await page.evaluate(() => document.activeElement.id), "object");

  // Nobody does anything without the token.
  const runs = () => object.locator("pre").innerText();
  const before = await runs();
  await object.getByRole("button", { name: "Run now" }).click();
  await object.getByText("Not allowed").waitFor();
  await page.getByText("This needs the token.").waitFor();
  assert.equal((await runs()).split("failed: the disk is full").length, before.split("failed: the disk is full").length);
  await page.getByLabel("Token").fill("guessed");
  await page.getByRole("button", { name: "Use token" }).click();
  await object.getByRole("button", { name: "Run now" }).click();
  await object.getByText("Not allowed").waitFor();
  await accessible(page, "the page when something is refused");
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Use token" }).click();
  await object.getByRole("button", { name: "Run now" }).click();
  await object.getByText("It runs as soon as a slot is free.").waitFor();
  await page.locator("#failing").getByText("2", { exact: true }).waitFor();
  await object.getByRole("button", { name: "Run now" }).focus();

  for (const [name, width, scheme] of [
    ["desktop-light", 1280, "light"], ["desktop-dark", 1280, "dark"], ["phone-light", 390, "light"], ["phone-dark", 390, "dark"],
  ]) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme: scheme });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= width, `${name} is ${wide} wide`);
    await accessible(page, name);
    await page.screenshot({ path: path.join(folder, `${name}.png`), fullPage: true });
  }
  assert.deepEqual(complaints, []);
  assert.deepEqual(elsewhere, []);
  await browser.close();
  console.log("passed");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
