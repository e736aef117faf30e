//! Lists and ranges in curl's URLs: `{one,two}`, `[1-3]`, `[001-100:10]`, `[a-f]`.

/// At most so many URLs are made of one.
pub(super) const MOST: usize = 100;

/// The URLs that one with globs stands for, in curl's order; itself if it has none. `None` if they
/// are more than [`MOST`].
pub(super) fn expand(url: &str) -> Option<Vec<String>> {
    let Some((before, choices, after)) = first(url) else { return Some(vec![url.to_owned()]) };
    if choices.len() > MOST {
        return None;
    }
    let rest = expand(after)?;
    if choices.len() * rest.len() > MOST {
        return None;
    }
    let with = |choice: &String| -> Vec<String> {
        rest.iter().map(|rest| format!("{before}{choice}{rest}")).collect()
    };
    Some(choices.iter().flat_map(with).collect())
}

/// What stands before the first glob, what it stands for, and what follows it.
fn first(url: &str) -> Option<(&str, Vec<String>, &str)> {
    let mut from = 0;
    loop {
        let open = from + url[from..].find(['{', '['])?;
        let close = if url[open..].starts_with('{') { '}' } else { ']' };
        let length = url[open..].find(close)?;
        let inside = &url[open + 1..open + length];
        let choices = match close {
            // One choice, as in a placeholder of an API's description, is no list.
            '}' => inside.contains(',').then(|| inside.split(',').map(str::to_owned).collect()),
            _ => range(inside),
        };
        match choices {
            Some(choices) => return Some((&url[..open], choices, &url[open + length + 1..])),
            // An address of IPv6, or nothing that curl would take.
            None => from = open + 1,
        }
    }
}

/// The values of `1-3`, `001-100:10` or `a-f:2`.
fn range(text: &str) -> Option<Vec<String>> {
    let (ends, step) = match text.split_once(':') {
        Some((ends, step)) => (ends, step.parse::<usize>().ok().filter(|step| *step > 0)?),
        None => (text, 1),
    };
    let (low, high) = ends.split_once('-')?;
    let mut letters = (low.chars(), high.chars());
    if let (Some(a), None, Some(b), None) =
        (letters.0.next(), letters.0.next(), letters.1.next(), letters.1.next())
        && a.is_ascii_alphabetic()
        && b.is_ascii_alphabetic()
    {
        return (a <= b).then(|| (a..=b).step_by(step).map(String::from).collect());
    }
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(low) || !digits(high) {
        return None;
    }
    let (from, to) = (low.parse::<u64>().ok()?, high.parse::<u64>().ok()?);
    let width = if low.starts_with('0') { low.len() } else { 0 };
    // One more than are made shows that there are too many.
    let numbers = (from..=to).step_by(step).take(MOST + 1);
    (from <= to).then(|| numbers.map(|number| format!("{number:0width$}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges_are_those_of_curl() {
        for (url, expected) in [
            ("http://h/", &["http://h/"][..]),
            ("http://h/{a,b}/x", &["http://h/a/x", "http://h/b/x"]),
            ("http://h/[1-3]", &["http://h/1", "http://h/2", "http://h/3"]),
            ("http://h/[08-10]", &["http://h/08", "http://h/09", "http://h/10"]),
            ("http://h/[1-9:4]", &["http://h/1", "http://h/5", "http://h/9"]),
            ("http://h/[a-c:2]", &["http://h/a", "http://h/c"]),
            ("http://h/{x,y}[1-2]", &["http://h/x1", "http://h/x2", "http://h/y1", "http://h/y2"]),
            ("http://[::1]:80/{id}", &["http://[::1]:80/{id}"]),
            ("http://h/[3-1]{", &["http://h/[3-1]{"]),
        ] {
            assert_eq!(expand(url).unwrap(), expected, "{url}");
        }
        assert_eq!(expand("http://h/[1-1000000]"), None);
        assert_eq!(expand("http://h/[1-20]/[1-20]"), None);
    }
}
