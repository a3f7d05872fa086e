"""How the look-up page looks beside other pages, and the script that filters its rows.

What is chosen stands in the page's address, so that it can be sent to somebody.
"""

from ortgpu_fix.report.page_style import STYLE

LOOKUP_STYLE = (
    STYLE
    + """
:root { --yes: #d9f2df; --ptx: #fdf0c8; }
@media (prefers-color-scheme: dark) { :root { --yes: #17402a; --ptx: #493c10; } }
a { color: var(--bar); }
main { max-width: 110rem; }
p, li, dl, form { max-width: 62rem; }
#plan-part, #causes-part, #commands-part, #why-part, #files-part { max-width: 62rem; }
th:not(.number), td:not(.number), td:first-child { min-width: 0; }
th { background: var(--back); }
td { overflow-wrap: normal; }
td.yes { background: var(--yes); }
td.ptx { background: var(--ptx); }
form { display: flex; flex-wrap: wrap; gap: .75rem 1rem; align-items: end; }
@media (scripting: none) { form { display: none; } }
form label {
  display: grid; grid-template-columns: minmax(0, 1fr); gap: .15rem; flex: 1 1 12rem; min-width: 0;
}
td.name { white-space: nowrap; }
td.list { min-width: 8rem; }
select, textarea, button, .button {
  font: inherit; color: inherit; background: var(--code); border: 1px solid var(--dim);
  border-radius: 4px; padding: .35rem .5rem; min-height: 2.25rem; max-width: 100%;
}
h2 { scroll-margin-top: 1rem; }
:target { outline: 3px solid var(--bar); outline-offset: 6px; }
small { display: block; font-size: .85rem; overflow-wrap: anywhere; }
@media print { form, #count { display: none; } }
"""
)
LOOKUP_SCRIPT = """
const form = document.getElementById("filter");
const count = document.getElementById("count");
const rows = [...document.querySelectorAll("tr[data-runs]")];
const runs = (row, gpu, driver) => row.dataset.runs.split(" ").some(each => {
  const [capability, first, last] = each.split(/[:-]/);
  return (!gpu || capability === gpu) && (!driver || (+first <= +driver && +driver <= +last));
});
const show = () => {
  const {system, driver, gpu, torch} = Object.fromEntries(new FormData(form));
  let shown = 0;
  for (const row of rows) {
    const fits = (!system || row.dataset.system === system)
      && (!torch || row.dataset.torch.split(" ").includes(torch))
      && (!(gpu || driver) || runs(row, gpu, driver));
    row.hidden = !fits;
    shown += fits;
  }
  count.textContent = count.dataset.text.replace("{shown}", shown).replace("{all}", rows.length);
};
for (const [name, value] of new URLSearchParams(location.search)) {
  if (form.elements[name]) form.elements[name].value = value;
}
form.addEventListener("change", () => {
  show();
  const chosen = [...new FormData(form)].filter(([, value]) => value);
  history.replaceState(null, "", `?${new URLSearchParams(chosen)}${location.hash}`);
});
show();
"""
