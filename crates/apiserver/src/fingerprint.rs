/// An opaque short name for texts: equal for equal ones.
pub(crate) fn fingerprint<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    // FNV-1a, 64 bits: there is nobody to defend against.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for text in texts {
        for byte in text.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}
