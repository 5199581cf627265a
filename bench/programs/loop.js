let n = 0;
for (let i = 0; i < 3000000; i++) n = (n + i * 3) % 1000003;
return n;
