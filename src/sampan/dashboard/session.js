// Logging in: by the link of `sampan ui`, a pasted token, or what the browser brings by itself.
//
// Invariant: a code or token is never in a query, a cookie or the history: the fragment is not sent
// to any server, and is taken out of the address bar at once.

import {ApiError, send, token, whoAmI} from "./api.js";
import {h, plain, show} from "./dom.js";

const CODE = /^#code=([A-Za-z0-9_-]+)$/;

// → the user, or null: then a login form has to be shown.
export async function resume() {
  const code = CODE.exec(location.hash)?.[1];
  if (code) {
    history.replaceState(null, "", location.pathname + "#/");
    const problem = await exchange(code);
    if (problem) return {user: null, problem};
  }
  try {
    const user = await whoAmI();
    if (user.username === "system:anonymous") return {user: null, problem: ""};
    return {user, problem: ""};
  } catch (error) {
    const had = token.get() !== "";
    if (error.status === 401) token.clear();
    const problem = error.status === 401 ? (had ? "This token is nobody's, or too old." : "") : error.message;
    return {user: null, problem};
  }
}

async function exchange(code) {
  token.clear();
  try {
    const options = {method: "POST", body: JSON.stringify({code}), headers: {"content-type": "application/json"}};
    token.set((await (await send("/ui/session", options)).json()).token);
    return "";
  } catch (error) {
    return error.message;
  }
}

export async function logOut() {
  try {
    await send("/ui/session", {method: "DELETE"});
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
  }
  token.clear();
  location.reload();
}

export function loginForm(place, problem, whenDone) {
  const input = h("input", {
    id: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true,
    "aria-describedby": "token-help",
  });
  const wrong = h("p", {class: "problem", role: "alert"}, plain(problem));
  const submit = async (event) => {
    event.preventDefault();
    token.set(input.value.trim());
    input.value = "";
    const {user, problem: why} = await resume();
    if (user) whenDone(user);
    else {
      wrong.textContent = plain(why);
      input.focus();
    }
  };
  show(
    place,
    h("h1", {}, "Log in"),
    h("p", {}, "Run ", h("code", {}, "sampan ui"), " on the machine where ", h("code", {}, "kubectl"),
      " works: it opens this page, logged in as the user of your kubeconfig."),
    h("form", {class: "login", onsubmit: submit},
      h("label", {for: "token"}, "Or paste a token"),
      input,
      h("p", {id: "token-help", class: "quiet"}, "For example of ",
        h("code", {}, "kubectl create token default"), ". It stays in this tab."),
      h("button", {type: "submit"}, "Log in"),
      wrong),
  );
  input.focus();
}
