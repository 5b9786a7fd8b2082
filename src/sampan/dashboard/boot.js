// The first thing that runs: the program, or once more when it did not arrive.
//
// A browser gives up what it is fetching whenever the machine's network changes, and a node of real
// containers changes it with every pod. (For the same reason index.html asks for this file twice.)

const TRIES = "sampan.tries";
const MOST = 8;

async function start() {
  const tries = Number(sessionStorage.getItem(TRIES) ?? 0);
  try {
    await import("./app.js");
    sessionStorage.removeItem(TRIES);
  } catch (error) {
    if (tries < MOST) {
      sessionStorage.setItem(TRIES, String(tries + 1));
      setTimeout(() => location.reload(), 200 * (tries + 1));
      return;
    }
    sessionStorage.removeItem(TRIES);
    document.getElementById("main").textContent = `The page did not arrive: ${error.message}. Load it again.`;
  }
}

globalThis.sampanStarted ??= start();
