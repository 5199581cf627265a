interface Row { n: number; name: string; open: boolean }
const rows: Row[] = [];
for (let n: number = 0; n < 5; n++) {
  rows.push({ n, name: `row ${n}`, open: n % 2 === 0 });
}
const total = rows.filter((row: Row): boolean => row.open).reduce((sum: number, row) => sum + row.n, 0);
const names: Map<string, Row> = new Map(rows.map((row) => [row.name, row] as [string, Row]));
return { total, known: names.has("row 3") };
