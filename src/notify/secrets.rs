//! What a receiver repeats of the address and the token, and no log may show.

use percent_encoding::percent_decode_str;

/// Stands for what is left out.
const LEFT_OUT: &str = "…";

/// The shortest word that is looked for by itself: shorter ones occur in any text.
const SHORTEST: usize = 4;

/// Returns the text without what it repeats of these secrets. A receiver may repeat a part only, such as the end of the
/// path, or the beginning of a token, and may escape characters: so each word of a secret is left out, and each word
/// that is a part of one.
pub(super) fn mask(text: &str, secrets: &[&str]) -> String {
    let decoded = secrets.iter().map(|it| percent_decode_str(it).decode_utf8_lossy());
    let mut secrets: Vec<String> = secrets.iter().map(|&it| it.to_owned()).collect();
    secrets.extend(decoded.map(Into::into));
    // A path may be part of another secret.
    secrets.sort_by_key(|it| std::cmp::Reverse(it.len()));
    let mut text = text.to_owned();
    // The path of a URL without one is "/".
    for secret in secrets.iter().filter(|it| it.len() > 1) {
        text = text.replace(secret, LEFT_OUT);
    }
    let secrets: Vec<String> = secrets.iter().map(|it| it.to_lowercase()).collect();
    let is_separator = |char: char| !char.is_alphanumeric() && !matches!(char, '-' | '_');
    let is_long = |word: &str| word.chars().count() >= SHORTEST;
    let words = secrets.iter().flat_map(|it| it.split(is_separator));
    let words: Vec<&str> = words.filter(|word| is_long(word)).collect();
    let is_secret = |word: &str| {
        let word = word.to_lowercase();
        is_long(&word)
            && (secrets.iter().any(|it| it.contains(&word))
                || words.iter().any(|it| word.contains(it)))
    };
    let mut masked = String::new();
    for piece in text.split_inclusive(is_separator) {
        let word = piece.trim_end_matches(is_separator);
        masked.push_str(if is_secret(word) { LEFT_OUT } else { word });
        masked.push_str(&piece[word.len()..]);
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_does_not_show_path_query_or_token() {
        let secrets =
            ["/webhook/9b1c%20d-77/x1?key=Hush", "/webhook/9b1c%20d-77/x1", "abc.DEFG+/h=="];
        for (answer, shown) in [
            ("Cannot POST /webhook/9b1c%20d-77/x1?key=Hush", "Cannot POST …"),
            ("Cannot POST /webhook/9b1c%20d-77/x1.", "Cannot POST …."),
            ("Cannot POST /webhook/9b1c d-77/x1", "Cannot POST …"),
            // n8n shows the end of the path, PHP escapes slashes.
            ("\"POST 9b1c%20d-77\" is not registered", "\"POST …%…\" is not registered"),
            (r#"{"path":"\/webhook\/9b1c"}"#, r#"{"path":"\/…\/…"}"#),
            ("WEBHOOK%2F9b1c", "…%…"),
            ("key=hush", "key=…"),
            ("Bearer abc.DEFG+/h== is expired", "Bearer … is expired"),
            ("token \"abc.DEFG...\" is expired", "token \"abc.…...\" is expired"),
            ("as told", "as told"),
            ("", ""),
        ] {
            assert_eq!(mask(answer, &secrets), shown, "{answer}");
        }
        assert_eq!(mask("GET / only", &["/", ""]), "GET / only");
    }
}
