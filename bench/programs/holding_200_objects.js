const kept = Array.from({ length: 200 }, (_, n) => ({ id: n, name: `order ${n}`, open: n % 2 === 0 }));
await yield_control();
return kept.length;
