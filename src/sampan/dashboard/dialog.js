// A question in front of the page, or something to read. One at a time; Esc closes it.

import {h} from "./dom.js";

// `done`: [title, work]; the dialog closes when the work has been done, and says why when it has not.
export function opened(title, body, done = null) {
  const problem = h("p", {role: "alert", class: "problem"});
  const close = h("button", {type: "button", class: "plain", onclick: () => dialog.close()}, done ? "Cancel" : "Close");
  const go = done && h("button", {type: "submit"}, done[0]);
  const form = h("form", {method: "dialog"}, h("h2", {id: "dialog-title"}, title), body, problem, h("p", {class: "choices"}, go, close));
  const dialog = h("dialog", {"aria-labelledby": "dialog-title"}, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!done || go.disabled) return;
    go.disabled = true;
    try {
      await done[1]();
      dialog.close();
    } catch (error) {
      problem.textContent = error.message;
    } finally {
      go.disabled = false;
    }
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
