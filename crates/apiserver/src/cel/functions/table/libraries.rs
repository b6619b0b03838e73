//! Kubernetes' own functions.

use crate::cel::functions::signature::Function;

/// Kubernetes' own functions.
pub(super) const LIBRARIES: &[Function] = &[
    ("url", &[("string_to_url", "(string) URL")]),
    ("isURL", &[("is_url_string", "(string) bool")]),
    ("getScheme", &[("url_part", "URL.() string")]),
    ("getHost", &[("url_part", "URL.() string")]),
    ("getHostname", &[("url_part", "URL.() string")]),
    ("getPort", &[("url_part", "URL.() string")]),
    ("getEscapedPath", &[("url_part", "URL.() string")]),
    (
        "getQuery",
        &[("url_get_query", "URL.() map(string, list(string))")],
    ),
    (
        "ip",
        &[("string_to_ip", "(string) IP"), ("cidr_ip", "CIDR.() IP")],
    ),
    ("isIP", &[("is_ip", "(string) bool")]),
    ("ip.isCanonical", &[("ip_is_canonical", "(string) bool")]),
    ("family", &[("ip_family", "IP.() int")]),
    ("isUnspecified", &[("ip_property", "IP.() bool")]),
    ("isLoopback", &[("ip_property", "IP.() bool")]),
    ("isLinkLocalMulticast", &[("ip_property", "IP.() bool")]),
    ("isLinkLocalUnicast", &[("ip_property", "IP.() bool")]),
    ("isGlobalUnicast", &[("ip_property", "IP.() bool")]),
    ("cidr", &[("string_to_cidr", "(string) CIDR")]),
    ("isCIDR", &[("is_cidr", "(string) bool")]),
    (
        "containsIP",
        &[
            ("cidr_contains_ip_string", "CIDR.(string) bool"),
            ("cidr_contains_ip_ip", "CIDR.(IP) bool"),
        ],
    ),
    (
        "containsCIDR",
        &[
            ("cidr_contains_cidr_string", "CIDR.(string) bool"),
            ("cidr_contains_cidr", "CIDR.(CIDR) bool"),
        ],
    ),
    ("masked", &[("masked_cidr", "CIDR.() CIDR")]),
    ("prefixLength", &[("cidr_prefix_length", "CIDR.() int")]),
    ("quantity", &[("string_to_quantity", "(string) Quantity")]),
    ("isQuantity", &[("is_quantity_string", "(string) bool")]),
    ("sign", &[("quantity_sign", "(Quantity) int")]),
    ("isInteger", &[("quantity_is_integer", "Quantity.() bool")]),
    ("asInteger", &[("quantity_get_int", "Quantity.() int")]),
    (
        "asApproximateFloat",
        &[("quantity_get_float", "Quantity.() double")],
    ),
    (
        "isGreaterThan",
        &[
            ("quantity_is_greater_than", "Quantity.(Quantity) bool"),
            ("semver_is_greater_than", "Semver.(Semver) bool"),
        ],
    ),
    (
        "isLessThan",
        &[
            ("quantity_is_less_than", "Quantity.(Quantity) bool"),
            ("semver_is_less_than", "Semver.(Semver) bool"),
        ],
    ),
    (
        "compareTo",
        &[
            ("quantity_compare_to", "Quantity.(Quantity) int"),
            ("semver_compare_to", "Semver.(Semver) int"),
        ],
    ),
    (
        "add",
        &[
            ("quantity_add", "Quantity.(Quantity) Quantity"),
            ("quantity_add_int", "Quantity.(int) Quantity"),
        ],
    ),
    (
        "sub",
        &[
            ("quantity_sub", "Quantity.(Quantity) Quantity"),
            ("quantity_sub_int", "Quantity.(int) Quantity"),
        ],
    ),
    (
        "semver",
        &[
            ("string_to_semver", "(string) Semver"),
            ("string_bool_to_semver", "(string, bool) Semver"),
        ],
    ),
    (
        "isSemver",
        &[
            ("is_semver_string", "(string) bool"),
            ("is_semver_string_bool", "(string, bool) bool"),
        ],
    ),
    ("major", &[("semver_major", "Semver.() int")]),
    ("minor", &[("semver_minor", "Semver.() int")]),
    ("patch", &[("semver_patch", "Semver.() int")]),
    (
        "format.named",
        &[("format-named", "(string) optional(Format)")],
    ),
    (
        "validate",
        &[("format-validate", "Format.(string) optional(list(string))")],
    ),
    (
        "format.dns1123Label",
        &[("format-dns1123Label", "() Format")],
    ),
    (
        "format.dns1123Subdomain",
        &[("format-dns1123Subdomain", "() Format")],
    ),
    (
        "format.dns1035Label",
        &[("format-dns1035Label", "() Format")],
    ),
    (
        "format.qualifiedName",
        &[("format-qualifiedName", "() Format")],
    ),
    (
        "format.dns1123LabelPrefix",
        &[("format-dns1123LabelPrefix", "() Format")],
    ),
    (
        "format.dns1123SubdomainPrefix",
        &[("format-dns1123SubdomainPrefix", "() Format")],
    ),
    (
        "format.dns1035LabelPrefix",
        &[("format-dns1035LabelPrefix", "() Format")],
    ),
    ("format.labelValue", &[("format-labelValue", "() Format")]),
    ("format.uri", &[("format-uri", "() Format")]),
    ("format.uuid", &[("format-uuid", "() Format")]),
    ("format.byte", &[("format-byte", "() Format")]),
    ("format.date", &[("format-date", "() Format")]),
    ("format.datetime", &[("format-datetime", "() Format")]),
];
