//! Rules and routes for an accelerated clock, to keep tests short: the exporter's clock runs faster (`demo
//! --clock`), and so must every duration in the configuration of Prometheus and Alertmanager.

/// A text of rules or routes in which every duration is divided, every rate is one of the faster
/// clock, and `time()` is the time of that clock, which began with the real one at `began`.
pub fn hurried(text: &str, pace: u32, began: f64) -> String {
    let lines = text.lines().map(|line| {
        let key = line.trim_start().split(':').next().unwrap_or_default();
        match key {
            "for" | "keep_firing_for" | "group_wait" | "group_interval" | "repeat_interval" => {
                let (key, value) = line.split_once(':').unwrap_or_default();
                format!("{key}: {}", shorter(value.trim(), pace))
            }
            // Texts stay as they are.
            _ if line.trim_start().starts_with('#') => line.to_owned(),
            _ => expression(line, pace),
        }
    });
    let text: String = lines.map(|line| line + "\n").collect();
    let text = rates(&text, pace);
    text.replace("time()", &format!("({began:.3} + (time() - {began:.3}) * {pace})"))
}

/// `5m` as milliseconds of the real clock.
fn shorter(length: &str, pace: u32) -> String {
    let time = humantime::parse_duration(length)
        .unwrap_or_else(|error| panic!("{length:?} is not a duration: {error}"));
    format!("{}ms", (time / pace).as_millis())
}

/// Ranges, `[5m]` and `[5m:1m]`.
fn expression(line: &str, pace: u32) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('[') {
        let (inside, after) = after.split_once(']').unwrap_or((after, ""));
        // Not those of characters, as in `[0-9]+`.
        let is_range = inside.split(':').all(|part| humantime::parse_duration(part).is_ok());
        let inside = if is_range {
            let parts: Vec<String> = inside.split(':').map(|part| shorter(part, pace)).collect();
            parts.join(":")
        } else {
            inside.to_owned()
        };
        out += &[before, "[", &inside, "]"].concat();
        rest = after;
    }
    out + rest
}

/// `rate(x[5m])` counts by real seconds, of which there are fewer.
fn rates(text: &str, pace: u32) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("rate(") {
        let is_word =
            rest[..at].ends_with(|last: char| last.is_alphanumeric() || "_:".contains(last));
        let open = at + "rate(".len();
        if is_word {
            out += &rest[..open];
            rest = &rest[open..];
            continue;
        }
        let close = open + closing(&rest[open..]);
        let slower = format!("({} / {pace})", &rest[at..close]);
        out += &[&rest[..at], &slower].concat();
        rest = &rest[close..];
    }
    out + rest
}

/// The position of the closing bracket for one that was opened just before a text.
fn closing(text: &str) -> usize {
    let mut depth = 1;
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    panic!("never closed: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_durations_are_shortened() {
        for (slow, fast) in [
            ("    for: 5m\n", "    for: 30000ms\n"),
            (
                "expr: max(rate(a{b=~\"x|y\"}[5m])) > 1\n",
                "expr: max((rate(a{b=~\"x|y\"}[30000ms]) / 10)) > 1\n",
            ),
            (
                "expr: x[1h:1m] and delta(y[10m])\n",
                "expr: x[360000ms:6000ms] and delta(y[60000ms])\n",
            ),
            ("expr: irate(x[1m])\n", "expr: irate(x[6000ms])\n"),
            ("  group_by: [fabric, link]\n", "  group_by: [fabric, link]\n"),
            ("expr: time() - x > 300\n", "expr: (1000.000 + (time() - 1000.000) * 10) - x > 300\n"),
        ] {
            assert_eq!(hurried(slow, 10, 1000.0), fast);
        }
    }
}
