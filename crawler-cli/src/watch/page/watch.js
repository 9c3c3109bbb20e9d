// Shows the page anew every few seconds, in place: what is the same stays as it is, with its focus, its open parts and the
// fields that somebody is filling in. Without this script, the page is as complete, and its reader loads it again.
'use strict';

(() => {
  const EVERY = 5_000;
  const LONGEST = 60_000;
  const PATIENCE = 20_000;

  const bar = document.getElementById('refresh');
  if (!bar) return;
  const text = document.createElement('span');
  text.setAttribute('role', 'status');
  const button = document.createElement('button');
  button.type = 'button';
  bar.replaceChildren(text, ' ', button);

  // The outcome of a form is told once.
  const address = new URL(location.href);
  if (address.searchParams.has('said')) {
    address.searchParams.delete('said');
    history.replaceState(null, '', address);
  }

  // Who asks for little motion has the page stand still until it is told to go on.
  const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
  let runs = (sessionStorage.getItem('refresh') ?? (still ? 'off' : 'on')) === 'on';
  let failures = 0;
  let timer = 0;
  let isPressed = false;
  let movedAt = -Infinity;
  let isLeaving = false;

  const say = (words, isBad = false) => {
    if (text.textContent !== words) text.textContent = words;
    text.className = isBad ? 'bad' : '';
    button.textContent = runs ? 'Stop' : 'Refresh by itself';
  };
  const sayNow = () => say(runs ? `Refreshes every ${EVERY / 1000} s` : 'Does not refresh');

  const wait = () => {
    clearTimeout(timer);
    if (!runs || document.hidden || isLeaving) return;
    timer = setTimeout(refresh, Math.min(EVERY * 2 ** failures, LONGEST));
  };

  // What somebody reads, marks or is about to press does not move.
  const isInUse = () =>
    isPressed ||
    (getSelection().type === 'Range' && !document.activeElement.matches('input, textarea')) ||
    (performance.now() - movedAt < 3_000 && document.querySelector('main :is(button, .button):hover'));

  async function refresh() {
    if (isInUse()) return wait();
    try {
      const answer = await fetch(location.href, {
        cache: 'no-store',
        headers: { Accept: 'text/html' },
        redirect: 'manual',
        signal: AbortSignal.timeout(PATIENCE),
      });
      if (answer.type === 'opaqueredirect' || answer.status === 401) {
        runs = false;
        return say('You are logged out: load the page again', true);
      }
      if (answer.status !== 200 && answer.status !== 404) throw new Error(answer.status);
      const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
      if (!runs || isLeaving) return;
      if (!isInUse()) {
        const focused = document.activeElement;
        morph(document.body, fresh.body);
        if (document.title !== fresh.title) document.title = fresh.title;
        if (focused?.isConnected && focused !== document.activeElement) focused.focus({ preventScroll: true });
      }
      failures = 0;
      sayNow();
    } catch {
      if (isLeaving || !runs) return;
      failures += 1;
      const next = Math.min(EVERY * 2 ** failures, LONGEST) / 1000;
      say(`The service does not answer; asked again in ${next} s`, true);
    }
    wait();
  }

  // What names an element among its siblings.
  const key = (node) => {
    if (node.nodeType !== Node.ELEMENT_NODE) return '';
    if (node.id) return node.id;
    return node.nodeName === 'TR' ? (node.querySelector('[href]')?.getAttribute('href') ?? '') : '';
  };
  const isAlike = (one, other) => one.nodeName === other.nodeName && key(one) === key(other);
  // What this script and its reader have made.
  const isOwn = (node) => node.nodeType === Node.ELEMENT_NODE && node.hasAttribute('data-own');
  const isOfReader = (node, name) =>
    (name === 'open' && node.nodeName === 'DETAILS') ||
    (['value', 'checked', 'selected'].includes(name) && node.type !== 'hidden');

  function morph(node, fresh) {
    if (node.nodeType !== Node.ELEMENT_NODE) {
      if (node.data !== fresh.data) node.data = fresh.data;
      return;
    }
    for (const name of fresh.getAttributeNames()) {
      const value = fresh.getAttribute(name);
      if (!isOfReader(node, name) && node.getAttribute(name) !== value) node.setAttribute(name, value);
    }
    for (const name of node.getAttributeNames()) {
      if (!isOfReader(node, name) && !fresh.hasAttribute(name)) node.removeAttribute(name);
    }
    let at = skip(node.firstChild);
    for (const child of fresh.childNodes) {
      if (isOwn(child)) continue;
      let found = at;
      while (found && !isAlike(found, child)) found = skip(found.nextSibling);
      if (!found) {
        node.insertBefore(document.importNode(child, true), at);
        continue;
      }
      at = without(at, found);
      at = skip(found.nextSibling);
      morph(found, child);
    }
    without(at, null);
  }

  const skip = (node) => {
    while (node && isOwn(node)) node = node.nextSibling;
    return node;
  };

  // Removes the siblings from one to the other.
  const without = (from, to) => {
    while (from !== to) {
      const next = skip(from.nextSibling);
      from.remove();
      from = next;
    }
    return from;
  };

  button.addEventListener('click', () => {
    runs = !runs;
    failures = 0;
    sessionStorage.setItem('refresh', runs ? 'on' : 'off');
    sayNow();
    clearTimeout(timer);
    if (runs) refresh();
  });
  document.addEventListener('visibilitychange', () => {
    clearTimeout(timer);
    if (runs && !document.hidden) refresh();
  });
  addEventListener('pointermove', () => (movedAt = performance.now()));
  addEventListener('pointerdown', () => (isPressed = true));
  for (const end of ['pointerup', 'pointercancel']) addEventListener(end, () => (isPressed = false));
  // A form may be sent into another tab.
  addEventListener('submit', () => {
    isLeaving = true;
    setTimeout(() => {
      isLeaving = false;
      wait();
    }, PATIENCE);
  });
  addEventListener('pagehide', () => {
    isLeaving = true;
    clearTimeout(timer);
  });
  addEventListener('pageshow', (event) => {
    if (!event.persisted) return;
    isLeaving = false;
    if (runs) refresh();
  });
  sayNow();
  wait();
})();
