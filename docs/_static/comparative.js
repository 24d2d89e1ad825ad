// A mark leads to its twin in the other column; there, the twin leads back.
document.addEventListener("click", (event) => {
  const mark = event.target.closest("a.mark");
  if (!mark) return;
  const twin = document.getElementById(mark.hash.slice(1));
  if (!twin) return;
  const panel = twin.closest(".panel");
  const at = [...panel.parentElement.querySelectorAll(":scope > .panel")].indexOf(panel);
  const tab = panel.parentElement.querySelectorAll(":scope > input")[at];
  if (tab) tab.checked = true;
  twin.focus({ preventScroll: true });
});

// What is wider than its place is scrolled by keyboard too, and has a name there.
const reachable = () => {
  for (const box of document.querySelectorAll("article pre, article .table-wrapper")) {
    if (box.scrollWidth <= box.clientWidth) continue;
    const caption = box.closest("figure")?.querySelector("figcaption");
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", caption?.textContent ?? (box.matches("pre") ? "Text" : "Table"));
  }
};
addEventListener("load", reachable);
addEventListener("resize", reachable);
addEventListener("change", reachable);

// A copy of a program has the lines that are folded, too.
document.addEventListener("copy", (event) => {
  const range = getSelection().rangeCount && getSelection().getRangeAt(0);
  const part = range && range.cloneContents();
  if (!part || !part.querySelector(".fold") || part.querySelector("figure")) return;
  for (const summary of part.querySelectorAll("summary")) summary.remove();
  event.clipboardData.setData("text/plain", part.textContent);
  event.preventDefault();
});
