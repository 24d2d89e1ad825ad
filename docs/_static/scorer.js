// A name comes first where it is explained; then pages that explain come before pages that prove,
// and before programs that only use a word.
const BONUS = [
  [/^(trio|guide\/(tutorial|check|lasting))$/, 30],
  [/^guide\/(rules|reference\/command)$/, 45],
  [/^(four|done|enough|failures)/, 5],
  [/^guide\/(promises|cost|architecture|contributing)$/, -30],
  [/^(mutations|errata|ledger|reading\/)/, -10],
];
const isAskedFor = (name) =>
  `.${name}`.endsWith(`.${document.querySelector("input[name=q]").value.trim()}`);
window.Scorer = {
  score: ([page, title, , , score, , kind]) =>
    BONUS.reduce((sum, [pages, bonus]) => sum + (pages.test(page) ? bonus : 0), score) +
    // A name that you import comes before a method of the same name.
    (kind === "object" && isAskedFor(title) ? (/\.[A-Z]\w*\./.test(title) ? 150 : 200) - title.length : 0),
  // As Sphinx has them.
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
