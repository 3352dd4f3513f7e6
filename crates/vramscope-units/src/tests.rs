use super::*;

#[test]
fn bytes_use_binary_units_and_rounded_digits() {
    let check = |n: u64, expected: &str| assert_eq!(Bytes(n).to_string(), expected, "{n}");
    check(0, "0 B");
    check(1023, "1023 B");
    check(1024, "1.00 KiB");
    check(2 << 20, "2.00 MiB");
    check((1 << 20) - 1, "1.00 MiB"); // never "1024.00 KiB"
    check(1020 << 20, "1.00 GiB");
    check(1000 << 20, "0.98 GiB");
    check(972 << 20, "972.0 MiB");
    check(973 << 20, "0.95 GiB");
    check(973, "973 B");
    check(345_208_832, "329.2 MiB");
    check(45_609_994_504, "42.48 GiB");
    check(u64::MAX, "16.00 EiB");
}

#[test]
fn durations_change_unit_without_gaps() {
    let check = |n: i64, expected: &str| assert_eq!(Micros(n).to_string(), expected, "{n}");
    check(0, "0 µs");
    check(999, "999 µs");
    check(7_900, "7.90 ms");
    check(38_250, "38.2 ms");
    check(412_000, "412 ms");
    check(1_204_000, "1.204 s");
    check(123_100_000, "2 min 03.1 s");
    check(-7_900, "-7.90 ms");
    check(9_994, "9.99 ms");
    check(9_995, "10.0 ms"); // never "10.00 ms"
    check(99_949, "99.9 ms");
    check(99_950, "100 ms");
    check(999_999, "1000 ms");
    check(120_000_000, "2 min 00.0 s");
    check(179_960_000, "3 min 00.0 s"); // never "2 min 60.0 s"
    check(i64::MIN, "-153,722,867,280 min 54.8 s");
}

#[test]
fn ties_round_to_even() {
    let check = |n: u64, expected: &str| assert_eq!(Bytes(n).to_string(), expected, "{n}");
    // 1.125 and 1.375 are exact binary fractions, so these are true ties.
    check(1024 + 128, "1.12 KiB");
    check(1024 + 384, "1.38 KiB");
    check(100 * 1024 + 256, "100.2 KiB");
    check(1_043_333, "0.99 MiB");
    check(1_043_334, "1.00 MiB");
}

#[test]
fn addresses_are_written_as_pytorch_prints_them() {
    assert_eq!(Addr(0x7600_2a00_0000).to_string(), "0x76002a000000");
    assert_eq!(Addr(u64::MAX).plain(), "0xffffffffffffffff");
}

#[test]
fn ticks_are_round_and_distinct() {
    let texts = |ticks: Vec<Tick>| ticks.into_iter().map(|t| t.text).collect::<Vec<_>>();
    assert_eq!(
        texts(byte_ticks(0.0, 42.48 * 1024f64.powi(3), 6)),
        ["0", "8 GiB", "16 GiB", "24 GiB", "32 GiB", "40 GiB"]
    );
    assert_eq!(
        texts(byte_ticks(0.0, 5.6 * 1024f64.powi(3), 1)),
        ["0", "4 GiB"],
        "a low plot has a second label"
    );
    for (lo, hi) in [(0.0, 3.0), (0.0, 1e9), (3e9, 3.1e9), (1e12 + 1.0, 1e12 + 9.0)] {
        let ticks = byte_ticks(lo, hi, 1);
        assert!((2..=3).contains(&ticks.len()), "{lo} to {hi}: {ticks:?}");
        assert_ne!(ticks[0].text, ticks[1].text);
    }
    assert_eq!(
        texts(byte_ticks(0.0, 1.5 * 1024f64.powi(3), 6)),
        ["0", "256 MiB", "512 MiB", "768 MiB", "1024 MiB", "1280 MiB", "1536 MiB"]
    );
    assert_eq!(texts(event_ticks(-1.0, 38_000.0, 5)), ["#0", "#10,000", "#20,000", "#30,000"]);
    assert_eq!(
        texts(time_ticks(1_203_990.0, 1_204_010.0, 4)),
        ["1.203990 s", "1.203995 s", "1.204000 s", "1.204005 s", "1.204010 s"]
    );
    assert!(time_ticks(f64::NAN, 1.0, 4).is_empty());
}

#[test]
fn ticks_beside_breaks_have_the_real_time() {
    // 500 ms take 10 ms of the axis.
    let breaks = [TimeBreak { x0: 100_000.0, x1: 110_000.0, time: 500_000.0 }];
    assert_eq!(time_at(50_000.0, &breaks), 50_000.0);
    assert_eq!(time_at(105_000.0, &breaks), 350_000.0);
    assert_eq!(time_at(160_000.0, &breaks), 650_000.0);
    let ticks = broken_time_ticks(0.0, 210_000.0, 4, &breaks);
    for tick in &ticks {
        let time = time_at(tick.value, &breaks);
        assert_eq!(tick.text, format!("{} ms", (time / 1000.0).round()), "{tick:?}");
        assert!(!(100_000.0 < tick.value && tick.value < 110_000.0), "{tick:?}");
    }
    assert_eq!(ticks.first().map(|tick| tick.text.as_str()), Some("0 ms"));
    assert_eq!(ticks.last().map(|tick| tick.text.as_str()), Some("700 ms"));
    assert!(ticks.windows(2).all(|pair| pair[1].value - pair[0].value > 30_000.0), "{ticks:?}");
    assert_eq!(broken_time_ticks(0.0, 9e5, 4, &[]), time_ticks(0.0, 9e5, 4));
    assert!(broken_time_ticks(f64::NAN, 1.0, 4, &breaks).is_empty());
}
