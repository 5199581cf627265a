const rows = [];
for (let n = 0; n < 5; n++) {
  rows.push({ n, name: `row ${n}`, open: n % 2 === 0 });
}
const total = rows.filter((row) => row.open).reduce((sum, row) => sum + row.n, 0);
const names = new Map(rows.map((row) => [row.name, row]));
return { total, known: names.has("row 3") };
