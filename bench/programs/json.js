const rows = Array.from({ length: 2000 }, (_, n) => ({ n, name: "row " + n, tags: ["a", "b"] }));
let size = 0;
for (let i = 0; i < 15; i++) size += JSON.stringify(JSON.parse(JSON.stringify(rows))).length;
return size;
