;; What differs between a piece of a VM's memory and the same piece of its boot image, and back.
;;
;; A piece is at most 256 KiB, in grains of 512 bytes, in words of 8. What differs of it is written as
;;
;;     length of the rest (4 bytes), then for each grain that differs:
;;     its number (4 bytes), which of its words differ (8 bytes, a bit each), those words exclusive-or'ed
;;
;; in little-endian order. Where what is in this memory: see `sandbox/difference.py`.
(module
  (memory (export "memory") 17)
  (global $piece i32 (i32.const 0))
  (global $records i32 (i32.const 262144))
  (global $most i32 (i32.const 268288)) ;; of records: 512 grains of 12 + 512 bytes

  ;; Write what differs between the piece and `size` bytes at `base`; return how many bytes that are.
  (func (export "pack") (param $base i32) (param $size i32) (result i32)
    (local $now i32) (local $end i32) (local $to i32) (local $grain_end i32) (local $words i32)
    (local $mask i64) (local $mixed i64)
    (local.set $now (global.get $piece))
    (local.set $end (i32.add (local.get $now) (local.get $size)))
    (local.set $to (i32.add (global.get $records) (i32.const 4)))
    (loop $grains
      (if (i32.lt_u (local.get $now) (local.get $end)) (then
        (if (call $differs (local.get $base) (local.get $now)) (then
          (local.set $mask (i64.const 0))
          (local.set $words (i32.add (local.get $to) (i32.const 12)))
          (local.set $grain_end (i32.add (local.get $now) (i32.const 512)))
          (i32.store (local.get $to) (i32.shr_u (i32.sub (local.get $now) (global.get $piece)) (i32.const 9)))
          (loop $next_word
            (local.set $mixed (i64.xor (i64.load (local.get $base)) (i64.load (local.get $now))))
            (local.set $mask (i64.shr_u (local.get $mask) (i64.const 1)))
            (if (i64.ne (local.get $mixed) (i64.const 0)) (then
              (local.set $mask (i64.or (local.get $mask) (i64.const 0x8000000000000000)))
              (i64.store (local.get $words) (local.get $mixed))
              (local.set $words (i32.add (local.get $words) (i32.const 8)))))
            (local.set $base (i32.add (local.get $base) (i32.const 8)))
            (local.set $now (i32.add (local.get $now) (i32.const 8)))
            (br_if $next_word (i32.lt_u (local.get $now) (local.get $grain_end))))
          (i64.store offset=4 (local.get $to) (local.get $mask))
          (local.set $to (local.get $words)))
        (else
          (local.set $base (i32.add (local.get $base) (i32.const 512)))
          (local.set $now (i32.add (local.get $now) (i32.const 512)))))
        (br $grains))))
    (i32.store (global.get $records)
      (i32.sub (local.get $to) (i32.add (global.get $records) (i32.const 4))))
    (i32.sub (local.get $to) (global.get $records)))

  ;; Say whether two grains differ, 64 bytes at a time.
  (func $differs (param $base i32) (param $now i32) (result i32)
    (local $end i32) (local $mixed v128)
    (local.set $end (i32.add (local.get $now) (i32.const 512)))
    (loop $next
      (local.set $mixed
        (v128.or
          (v128.or
            (v128.xor (v128.load (local.get $base)) (v128.load (local.get $now)))
            (v128.xor (v128.load offset=16 (local.get $base)) (v128.load offset=16 (local.get $now))))
          (v128.or (local.get $mixed)
            (v128.or
              (v128.xor (v128.load offset=32 (local.get $base)) (v128.load offset=32 (local.get $now)))
              (v128.xor (v128.load offset=48 (local.get $base)) (v128.load offset=48 (local.get $now)))))))
      (local.set $base (i32.add (local.get $base) (i32.const 64)))
      (local.set $now (i32.add (local.get $now) (i32.const 64)))
      (br_if $next (i32.lt_u (local.get $now) (local.get $end))))
    (v128.any_true (local.get $mixed)))

  ;; Make the piece of the `size` bytes at `base` and of what differs; return 0 if that is not well formed.
  (func (export "unpack") (param $base i32) (param $size i32) (result i32)
    (local $at i32) (local $end i32) (local $grain i32) (local $mask i64) (local $word i32)
    (memory.copy (global.get $piece) (local.get $base) (local.get $size))
    (if (i32.gt_u (i32.load (global.get $records)) (global.get $most)) (then (return (i32.const 0))))
    (local.set $at (i32.add (global.get $records) (i32.const 4)))
    (local.set $end (i32.add (local.get $at) (i32.load (global.get $records))))
    (loop $grains
      (if (i32.lt_u (local.get $at) (local.get $end)) (then
        (local.set $grain (i32.load (local.get $at)))
        (local.set $mask (i64.load offset=4 (local.get $at)))
        (if (i32.ge_u (local.get $grain) (i32.shr_u (local.get $size) (i32.const 9))) (then (return (i32.const 0))))
        (local.set $at (i32.add (local.get $at) (i32.const 12)))
        (loop $words
          (if (i64.ne (local.get $mask) (i64.const 0)) (then
            (local.set $word (i32.add
              (i32.add (global.get $piece) (i32.shl (local.get $grain) (i32.const 9)))
              (i32.shl (i32.wrap_i64 (i64.ctz (local.get $mask))) (i32.const 3))))
            (i64.store (local.get $word) (i64.xor (i64.load (local.get $word)) (i64.load (local.get $at))))
            (local.set $at (i32.add (local.get $at) (i32.const 8)))
            (local.set $mask (i64.and (local.get $mask) (i64.sub (local.get $mask) (i64.const 1))))
            (br $words))))
        (br $grains))))
    (i32.eq (local.get $at) (local.get $end))))
