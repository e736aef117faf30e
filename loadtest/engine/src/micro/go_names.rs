//! Names of Go benchmarks.

/// Splits `-8` off `Encode-8`; `None` without such an end.
fn processors(name: &str) -> Option<(&str, u32)> {
    let (front, digits) = name.rsplit_once('-')?;
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let count = digits.parse().ok().filter(|&count| plain && count > 1)?;
    (!front.is_empty()).then_some((front, count))
}

/// The number of processors that Go appended to every name, if it did.
///
/// Go appends it unless it is 1, and a sub-benchmark may itself be called `size-64`:
/// it is only taken for one if all names end in the same number. With
/// `-cpu 1,2,4` they do not, and the number stays part of the name.
pub(super) fn shared_processors<'a>(mut names: impl Iterator<Item = &'a str>) -> Option<u32> {
    let (_, first) = processors(names.next()?)?;
    names.all(|name| processors(name).is_some_and(|(_, count)| count == first)).then_some(first)
}

/// The name without `Benchmark` and, if `shared`, without the number of processors.
pub(super) fn shortened(name: &str, shared: Option<u32>) -> String {
    let name = match (shared, processors(name)) {
        (Some(_), Some((front, _))) => front,
        _ => name,
    };
    match name.strip_prefix("Benchmark") {
        None | Some("") => name.to_owned(),
        // `Benchmark_x` is shown as `x`, `Benchmark/x` cannot be.
        Some(rest) => rest.trim_start_matches('_').to_owned(),
    }
}

/// Whether Go would take a function of this name for a benchmark.
pub(super) fn is_benchmark(word: &str) -> bool {
    word.strip_prefix("Benchmark")
        .is_some_and(|rest| rest.chars().next().is_none_or(|first| !first.is_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_only_cut_off_where_go_appended_it() {
        let all = ["BenchmarkA-8", "BenchmarkB/size-64-8"];
        assert_eq!(shared_processors(all.into_iter()), Some(8));
        assert_eq!(shortened(all[1], Some(8)), "B/size-64");
        assert_eq!(shared_processors(["BenchmarkA", "BenchmarkB/size-64"].into_iter()), None);
        assert_eq!(shared_processors(["BenchmarkA-2", "BenchmarkA-4"].into_iter()), None);
        assert_eq!(shortened("BenchmarkB/size-64", None), "B/size-64");
        assert_eq!(shortened("Benchmark_x", None), "x");
        assert_eq!(shortened("Benchmark", None), "Benchmark");
        assert!(is_benchmark("BenchmarkX") && is_benchmark("Benchmark"));
        assert!(!is_benchmark("Benchmarking") && !is_benchmark("Bench"));
    }
}
