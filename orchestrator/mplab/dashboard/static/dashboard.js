// Updates a page of the dashboard when the server reports a change: it fetches the page again, and replaces the parts
// with the attribute data-live that are different. Without this script, the page is complete, but stays as it is.
"use strict";

(() => {
  const status = document.getElementById("live");
  const button = document.createElement("button");
  let paused = false;
  let shown = null; // version that the page shows
  let wanted = null; // newest version that the server has reported
  let busy = false;
  let source = null; // connection to the server, while the page is visible
  let problem = "";

  const say = () => {
    const text = problem || (paused ? "Updates are paused." : "Updates live.");
    if (status.textContent !== text) {
      status.textContent = text;
    }
  };

  // A part that is replaced keeps its scroll position and the focus of the link inside.
  const swap = (old, fresh) => {
    const active = old.contains(document.activeElement) ? document.activeElement : null;
    const links = active ? Array.from(old.querySelectorAll(active.tagName)) : [];
    const place = links.indexOf(active);
    const scrolled = Array.from(old.querySelectorAll(".scroll"), (box) => [box.scrollLeft, box.scrollTop]);
    old.replaceWith(fresh);
    fresh.querySelectorAll(".scroll").forEach((box, index) => {
      [box.scrollLeft, box.scrollTop] = scrolled[index] || [0, 0];
    });
    if (active) {
      const same = active.id ? fresh.querySelector(`#${CSS.escape(active.id)}`) : null;
      (same || fresh.querySelectorAll(active.tagName)[place])?.focus({ preventScroll: true });
    }
  };

  const refresh = async () => {
    if (busy || paused || document.hidden || wanted === shown) {
      return;
    }
    busy = true;
    const version = wanted;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (!answer.ok) {
        throw new Error(`status ${answer.status}`);
      }
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      document.title = page.title;
      for (const old of document.querySelectorAll("[data-live]")) {
        const fresh = page.getElementById(old.id);
        if (fresh && fresh.outerHTML !== old.outerHTML && !old.contains(document.querySelector("input:focus"))) {
          swap(old, document.importNode(fresh, true));
        }
      }
      shown = version;
      problem = "";
    } catch {
      problem = "The page cannot be updated now.";
    }
    busy = false;
    say();
    if (wanted !== shown && !problem) {
      setTimeout(refresh, 500);
    }
  };

  // Browsers open at most six connections to a server over HTTP/1.1: a hidden page must not keep one.
  const connect = () => {
    if (document.hidden || (source && source.readyState !== EventSource.CLOSED)) {
      return;
    }
    const opened = new EventSource("/events");
    source = opened;
    opened.addEventListener("state", (event) => {
      wanted = JSON.parse(event.data).version;
      problem = "";
      say();
      refresh();
    });
    opened.addEventListener("error", () => {
      problem =
        opened.readyState === EventSource.CLOSED
          ? "This page does not update itself: the server is not reachable or has too many viewers. Reload it."
          : "The connection is lost; trying again.";
      say();
    });
  };
  const disconnect = () => source?.close();

  button.type = "button";
  button.textContent = "Pause updates";
  button.setAttribute("aria-pressed", "false");
  button.addEventListener("click", () => {
    paused = !paused;
    button.setAttribute("aria-pressed", String(paused));
    button.textContent = paused ? "Continue updates" : "Pause updates";
    say();
    refresh();
  });
  status.after(button);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      disconnect();
    } else {
      connect();
      refresh();
    }
  });
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", connect);
  connect();
})();
