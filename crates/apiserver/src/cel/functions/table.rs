//! Every function, and the ways to call it: a name for each, and its signature.

mod libraries;
mod lists;
mod operators;

use self::libraries::LIBRARIES;
use self::lists::LISTS;
use self::operators::OPERATORS;
use super::signature::Function;

pub(super) const ALL: [&[Function]; 7] = [
    OPERATORS,
    CONVERSIONS,
    TEXTS,
    LISTS,
    TIMES,
    OPTIONALS,
    LIBRARIES,
];

/// From one type to another.
const CONVERSIONS: &[Function] = &[
    ("type", &[("type", "(A) type(A)")]),
    ("dyn", &[("to_dyn", "(A) dyn")]),
    (
        "bool",
        &[
            ("bool_to_bool", "(bool) bool"),
            ("string_to_bool", "(string) bool"),
        ],
    ),
    (
        "bytes",
        &[
            ("bytes_to_bytes", "(bytes) bytes"),
            ("string_to_bytes", "(string) bytes"),
        ],
    ),
    (
        "double",
        &[
            ("double_to_double", "(double) double"),
            ("int64_to_double", "(int) double"),
            ("string_to_double", "(string) double"),
            ("uint64_to_double", "(uint) double"),
        ],
    ),
    (
        "duration",
        &[
            ("duration_to_duration", "(duration) duration"),
            ("int64_to_duration", "(int) duration"),
            ("string_to_duration", "(string) duration"),
        ],
    ),
    (
        "int",
        &[
            ("int64_to_int64", "(int) int"),
            ("double_to_int64", "(double) int"),
            ("duration_to_int64", "(duration) int"),
            ("string_to_int64", "(string) int"),
            ("timestamp_to_int64", "(timestamp) int"),
            ("uint64_to_int64", "(uint) int"),
        ],
    ),
    (
        "string",
        &[
            ("string_to_string", "(string) string"),
            ("bool_to_string", "(bool) string"),
            ("bytes_to_string", "(bytes) string"),
            ("double_to_string", "(double) string"),
            ("duration_to_string", "(duration) string"),
            ("int64_to_string", "(int) string"),
            ("timestamp_to_string", "(timestamp) string"),
            ("uint64_to_string", "(uint) string"),
            ("ip_to_string", "(IP) string"),
            ("cidr_to_string", "(CIDR) string"),
        ],
    ),
    (
        "timestamp",
        &[
            ("timestamp_to_timestamp", "(timestamp) timestamp"),
            ("int64_to_timestamp", "(int) timestamp"),
            ("string_to_timestamp", "(string) timestamp"),
        ],
    ),
    (
        "uint",
        &[
            ("uint64_to_uint64", "(uint) uint"),
            ("double_to_uint64", "(double) uint"),
            ("int64_to_uint64", "(int) uint"),
            ("string_to_uint64", "(string) uint"),
        ],
    ),
];

/// Functions of texts.
const TEXTS: &[Function] = &[
    ("contains", &[("contains_string", "string.(string) bool")]),
    (
        "startsWith",
        &[("starts_with_string", "string.(string) bool")],
    ),
    ("endsWith", &[("ends_with_string", "string.(string) bool")]),
    (
        "matches",
        &[
            ("matches", "(string, string) bool"),
            ("matches_string", "string.(string) bool"),
        ],
    ),
    ("charAt", &[("string_char_at_int", "string.(int) string")]),
    ("lowerAscii", &[("string_lower_ascii", "string.() string")]),
    ("upperAscii", &[("string_upper_ascii", "string.() string")]),
    (
        "replace",
        &[
            (
                "string_replace_string_string",
                "string.(string, string) string",
            ),
            (
                "string_replace_string_string_int",
                "string.(string, string, int) string",
            ),
        ],
    ),
    (
        "split",
        &[
            ("string_split_string", "string.(string) list(string)"),
            (
                "string_split_string_int",
                "string.(string, int) list(string)",
            ),
        ],
    ),
    (
        "substring",
        &[
            ("string_substring_int", "string.(int) string"),
            ("string_substring_int_int", "string.(int, int) string"),
        ],
    ),
    ("trim", &[("string_trim", "string.() string")]),
    (
        "join",
        &[
            ("list_join", "list(string).() string"),
            ("list_join_string", "list(string).(string) string"),
        ],
    ),
    ("format", &[("string_format", "string.(list(dyn)) string")]),
    ("strings.quote", &[("strings_quote", "(string) string")]),
    ("find", &[("string_find_string", "string.(string) string")]),
    (
        "findAll",
        &[
            ("string_find_all_string", "string.(string) list(string)"),
            (
                "string_find_all_string_int",
                "string.(string, int) list(string)",
            ),
        ],
    ),
];

/// Parts of times.
const TIMES: &[Function] = &[
    (
        "getFullYear",
        &[
            ("timestamp_part", "timestamp.() int"),
            ("timestamp_part_with_zone", "timestamp.(string) int"),
        ],
    ),
    (
        "getMonth",
        &[
            ("timestamp_part", "timestamp.() int"),
            ("timestamp_part_with_zone", "timestamp.(string) int"),
        ],
    ),
    (
        "getDayOfYear",
        &[
            ("timestamp_part", "timestamp.() int"),
            ("timestamp_part_with_zone", "timestamp.(string) int"),
        ],
    ),
    (
        "getDayOfMonth",
        &[
            ("timestamp_part", "timestamp.() int"),
            ("timestamp_part_with_zone", "timestamp.(string) int"),
        ],
    ),
    (
        "getDate",
        &[
            ("timestamp_part", "timestamp.() int"),
            ("timestamp_part_with_zone", "timestamp.(string) int"),
        ],
    ),
    (
        "getDayOfWeek",
        &[
            ("timestamp_part", "timestamp.() int"),
            ("timestamp_part_with_zone", "timestamp.(string) int"),
        ],
    ),
    (
        "getHours",
        &[
            ("timestamp_part", "timestamp.() int"),
            ("timestamp_part_with_zone", "timestamp.(string) int"),
            ("duration_part", "duration.() int"),
        ],
    ),
    (
        "getMinutes",
        &[
            ("timestamp_part", "timestamp.() int"),
            ("timestamp_part_with_zone", "timestamp.(string) int"),
            ("duration_part", "duration.() int"),
        ],
    ),
    (
        "getSeconds",
        &[
            ("timestamp_part", "timestamp.() int"),
            ("timestamp_part_with_zone", "timestamp.(string) int"),
            ("duration_part", "duration.() int"),
        ],
    ),
    (
        "getMilliseconds",
        &[
            ("timestamp_part", "timestamp.() int"),
            ("timestamp_part_with_zone", "timestamp.(string) int"),
            ("duration_part", "duration.() int"),
        ],
    ),
];

/// Values that may be absent.
const OPTIONALS: &[Function] = &[
    ("optional.of", &[("optional_of", "(A) optional(A)")]),
    (
        "optional.ofNonZeroValue",
        &[("optional_ofNonZeroValue", "(A) optional(A)")],
    ),
    ("optional.none", &[("optional_none", "() optional(A)")]),
    ("value", &[("optional_value", "optional(A).() A")]),
    ("hasValue", &[("optional_hasValue", "optional(A).() bool")]),
    (
        "or",
        &[(
            "optional_or_optional",
            "optional(A).(optional(A)) optional(A)",
        )],
    ),
    (
        "orValue",
        &[("optional_orValue_value", "optional(A).(A) A")],
    ),
    ("first", &[("list_first", "list(A).() optional(A)")]),
    ("last", &[("list_last", "list(A).() optional(A)")]),
    (
        "optional.unwrap",
        &[("optional_unwrap", "(list(optional(A))) list(A)")],
    ),
    (
        "unwrapOpt",
        &[("optional_unwrapOpt", "list(optional(A)).() list(A)")],
    ),
];
