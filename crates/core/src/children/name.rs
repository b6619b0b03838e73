//! Names of children, and short names of values.

/// The longest name that every kind takes, and that fits into the value of a label.
const LONGEST: usize = 63;

/// The digits of a hash and the dash before them.
const SUFFIX: usize = 9;

/// The name of the child of `owner` in the `role`: `blog-cache` for `blog` and `cache`.
///
/// It is the same each time, so that a run which begins anew finds what the last one made, and it is a
/// name that every kind takes: at most 63 lower-case letters, digits and dashes. What does not fit is
/// made to, and then ends with a hash of owner and role.
///
/// ```
/// use homeostat_core::children::name;
///
/// assert_eq!(name("blog", "cache"), "blog-cache");
/// assert_eq!(name("www.example.com", "cache"), "www-example-com-cache-320b57fb");
/// ```
///
/// A role without a dash in it keeps the children of two owners apart. With dashes, `a` and `b-c` are
/// named as `a-b` and `c`.
#[must_use]
pub fn name(owner: &str, role: &str) -> String {
    name_within(owner, role, LONGEST)
}

/// The same as [`name`] with at most `limit` letters, of which there are at least ten: the name of a
/// `CronJob` has 52.
#[must_use]
pub fn name_within(owner: &str, role: &str, limit: usize) -> String {
    let plain = format!("{owner}-{role}");
    let allowed = |letter: char| match letter {
        'a'..='z' | '0'..='9' => letter,
        'A'..='Z' => letter.to_ascii_lowercase(),
        _ => '-',
    };
    let fitting: String = plain.chars().map(allowed).collect();
    let enclosed = |name: &str| !name.starts_with('-') && !name.ends_with('-');
    if fitting == plain && plain.len() <= limit && enclosed(&plain) {
        return plain;
    }
    let room = limit.max(SUFFIX + 1) - SUFFIX;
    // All letters are ASCII by now.
    let head = &fitting[..fitting.len().min(room)];
    let head = match head.trim_matches('-') {
        "" => "x",
        head => head,
    };
    // A slash is in neither, so this tells apart what is another pair.
    let hash = hash(format!("{owner}/{role}").as_bytes());
    format!("{head}-{:08x}", (hash >> 32) ^ (hash & 0xffff_ffff))
}

/// Sixteen hexadecimal digits that stand for a text: the same in every build, on every machine.
///
/// It tells of a change; it is no protection against somebody who wants two texts to look the same.
#[must_use]
pub fn fingerprint(text: &str) -> String {
    format!("{:016x}", hash(text.as_bytes()))
}

/// FNV-1a. The hashes of `std` may change with the compiler, and then an update would rename all
/// children.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}
