//! Every function, and the ways to call it: a name for each, and its signature.

use crate::cel::operators;

/// The ways to call one function.
type Function = (&'static str, &'static [(&'static str, &'static str)]);

pub(super) const ALL: [&[Function]; 7] = [
    OPERATORS,
    CONVERSIONS,
    TEXTS,
    LISTS,
    TIMES,
    OPTIONALS,
    LIBRARIES,
];

/// Operators, and the size of what has one.
const OPERATORS: &[Function] = &[
    (operators::CONDITIONAL, &[("conditional", "(bool, A, A) A")]),
    (operators::AND, &[("logical_and", "(bool, bool) bool")]),
    (operators::OR, &[("logical_or", "(bool, bool) bool")]),
    (operators::NOT, &[("logical_not", "(bool) bool")]),
    (
        operators::NOT_STRICTLY_FALSE,
        &[("not_strictly_false", "(bool) bool")],
    ),
    (operators::EQUALS, &[("equals", "(A, A) bool")]),
    (operators::NOT_EQUALS, &[("not_equals", "(A, A) bool")]),
    (
        operators::LESS,
        &[
            ("less_bool", "(bool, bool) bool"),
            ("less_int64", "(int, int) bool"),
            ("less_int64_double", "(int, double) bool"),
            ("less_int64_uint64", "(int, uint) bool"),
            ("less_uint64", "(uint, uint) bool"),
            ("less_uint64_double", "(uint, double) bool"),
            ("less_uint64_int64", "(uint, int) bool"),
            ("less_double", "(double, double) bool"),
            ("less_double_int64", "(double, int) bool"),
            ("less_double_uint64", "(double, uint) bool"),
            ("less_string", "(string, string) bool"),
            ("less_bytes", "(bytes, bytes) bool"),
            ("less_timestamp", "(timestamp, timestamp) bool"),
            ("less_duration", "(duration, duration) bool"),
        ],
    ),
    (
        operators::LESS_EQUALS,
        &[
            ("less_equals_bool", "(bool, bool) bool"),
            ("less_equals_int64", "(int, int) bool"),
            ("less_equals_int64_double", "(int, double) bool"),
            ("less_equals_int64_uint64", "(int, uint) bool"),
            ("less_equals_uint64", "(uint, uint) bool"),
            ("less_equals_uint64_double", "(uint, double) bool"),
            ("less_equals_uint64_int64", "(uint, int) bool"),
            ("less_equals_double", "(double, double) bool"),
            ("less_equals_double_int64", "(double, int) bool"),
            ("less_equals_double_uint64", "(double, uint) bool"),
            ("less_equals_string", "(string, string) bool"),
            ("less_equals_bytes", "(bytes, bytes) bool"),
            ("less_equals_timestamp", "(timestamp, timestamp) bool"),
            ("less_equals_duration", "(duration, duration) bool"),
        ],
    ),
    (
        operators::GREATER,
        &[
            ("greater_bool", "(bool, bool) bool"),
            ("greater_int64", "(int, int) bool"),
            ("greater_int64_double", "(int, double) bool"),
            ("greater_int64_uint64", "(int, uint) bool"),
            ("greater_uint64", "(uint, uint) bool"),
            ("greater_uint64_double", "(uint, double) bool"),
            ("greater_uint64_int64", "(uint, int) bool"),
            ("greater_double", "(double, double) bool"),
            ("greater_double_int64", "(double, int) bool"),
            ("greater_double_uint64", "(double, uint) bool"),
            ("greater_string", "(string, string) bool"),
            ("greater_bytes", "(bytes, bytes) bool"),
            ("greater_timestamp", "(timestamp, timestamp) bool"),
            ("greater_duration", "(duration, duration) bool"),
        ],
    ),
    (
        operators::GREATER_EQUALS,
        &[
            ("greater_equals_bool", "(bool, bool) bool"),
            ("greater_equals_int64", "(int, int) bool"),
            ("greater_equals_int64_double", "(int, double) bool"),
            ("greater_equals_int64_uint64", "(int, uint) bool"),
            ("greater_equals_uint64", "(uint, uint) bool"),
            ("greater_equals_uint64_double", "(uint, double) bool"),
            ("greater_equals_uint64_int64", "(uint, int) bool"),
            ("greater_equals_double", "(double, double) bool"),
            ("greater_equals_double_int64", "(double, int) bool"),
            ("greater_equals_double_uint64", "(double, uint) bool"),
            ("greater_equals_string", "(string, string) bool"),
            ("greater_equals_bytes", "(bytes, bytes) bool"),
            ("greater_equals_timestamp", "(timestamp, timestamp) bool"),
            ("greater_equals_duration", "(duration, duration) bool"),
        ],
    ),
    (
        operators::ADD,
        &[
            ("add_bytes", "(bytes, bytes) bytes"),
            ("add_double", "(double, double) double"),
            ("add_duration_duration", "(duration, duration) duration"),
            ("add_duration_timestamp", "(duration, timestamp) timestamp"),
            ("add_timestamp_duration", "(timestamp, duration) timestamp"),
            ("add_int64", "(int, int) int"),
            ("add_list", "(list(A), list(A)) list(A)"),
            ("add_string", "(string, string) string"),
            ("add_uint64", "(uint, uint) uint"),
        ],
    ),
    (
        operators::SUBTRACT,
        &[
            ("subtract_double", "(double, double) double"),
            (
                "subtract_duration_duration",
                "(duration, duration) duration",
            ),
            ("subtract_int64", "(int, int) int"),
            (
                "subtract_timestamp_duration",
                "(timestamp, duration) timestamp",
            ),
            (
                "subtract_timestamp_timestamp",
                "(timestamp, timestamp) duration",
            ),
            ("subtract_uint64", "(uint, uint) uint"),
        ],
    ),
    (
        operators::MULTIPLY,
        &[
            ("multiply_double", "(double, double) double"),
            ("multiply_int64", "(int, int) int"),
            ("multiply_uint64", "(uint, uint) uint"),
        ],
    ),
    (
        operators::DIVIDE,
        &[
            ("divide_double", "(double, double) double"),
            ("divide_int64", "(int, int) int"),
            ("divide_uint64", "(uint, uint) uint"),
        ],
    ),
    (
        operators::MODULO,
        &[
            ("modulo_int64", "(int, int) int"),
            ("modulo_uint64", "(uint, uint) uint"),
        ],
    ),
    (
        operators::NEGATE,
        &[
            ("negate_double", "(double) double"),
            ("negate_int64", "(int) int"),
        ],
    ),
    (
        operators::IN,
        &[
            ("in_list", "(A, list(A)) bool"),
            ("in_map", "(A, map(A, B)) bool"),
        ],
    ),
    (
        operators::INDEX,
        &[
            ("index_list", "(list(A), int) A"),
            ("index_map", "(map(A, B), A) B"),
            (
                "optional_list_index_int",
                "(optional(list(A)), int) optional(A)",
            ),
            (
                "optional_map_index_value",
                "(optional(map(A, B)), A) optional(B)",
            ),
        ],
    ),
    (
        operators::OPTIONAL_INDEX,
        &[
            ("list_optindex_optional_int", "(list(A), int) optional(A)"),
            (
                "optional_list_optindex_optional_int",
                "(optional(list(A)), int) optional(A)",
            ),
            ("map_optindex_optional_value", "(map(A, B), A) optional(B)"),
            (
                "optional_map_optindex_optional_value",
                "(optional(map(A, B)), A) optional(B)",
            ),
        ],
    ),
    (
        operators::MAP_INSERT,
        &[
            ("map_insert_key_value", "(map(A, B), A, B) map(A, B)"),
            ("map_insert_map", "(map(A, B), map(A, B)) map(A, B)"),
        ],
    ),
    (
        "size",
        &[
            ("size_bytes", "(bytes) int"),
            ("bytes_size", "bytes.() int"),
            ("size_list", "(list(A)) int"),
            ("list_size", "list(A).() int"),
            ("size_map", "(map(A, B)) int"),
            ("map_size", "map(A, B).() int"),
            ("size_string", "(string) int"),
            ("string_size", "string.() int"),
        ],
    ),
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

/// Functions of lists; some are of texts too.
const LISTS: &[Function] = &[
    (
        "indexOf",
        &[
            ("list_a_index_of_int", "list(A).(A) int"),
            ("string_index_of_string", "string.(string) int"),
            ("string_index_of_string_int", "string.(string, int) int"),
        ],
    ),
    (
        "lastIndexOf",
        &[
            ("list_a_last_index_of_int", "list(A).(A) int"),
            ("string_last_index_of_string", "string.(string) int"),
            (
                "string_last_index_of_string_int",
                "string.(string, int) int",
            ),
        ],
    ),
    (
        "isSorted",
        &[
            ("list_int_is_sorted_bool", "list(int).() bool"),
            ("list_uint_is_sorted_bool", "list(uint).() bool"),
            ("list_double_is_sorted_bool", "list(double).() bool"),
            ("list_bool_is_sorted_bool", "list(bool).() bool"),
            ("list_duration_is_sorted_bool", "list(duration).() bool"),
            ("list_timestamp_is_sorted_bool", "list(timestamp).() bool"),
            ("list_string_is_sorted_bool", "list(string).() bool"),
            ("list_bytes_is_sorted_bool", "list(bytes).() bool"),
        ],
    ),
    (
        "sum",
        &[
            ("list_int_sum_int", "list(int).() int"),
            ("list_uint_sum_uint", "list(uint).() uint"),
            ("list_double_sum_double", "list(double).() double"),
            ("list_duration_sum_duration", "list(duration).() duration"),
        ],
    ),
    (
        "min",
        &[
            ("list_int_min_int", "list(int).() int"),
            ("list_uint_min_uint", "list(uint).() uint"),
            ("list_double_min_double", "list(double).() double"),
            ("list_bool_min_bool", "list(bool).() bool"),
            ("list_duration_min_duration", "list(duration).() duration"),
            (
                "list_timestamp_min_timestamp",
                "list(timestamp).() timestamp",
            ),
            ("list_string_min_string", "list(string).() string"),
            ("list_bytes_min_bytes", "list(bytes).() bytes"),
        ],
    ),
    (
        "max",
        &[
            ("list_int_max_int", "list(int).() int"),
            ("list_uint_max_uint", "list(uint).() uint"),
            ("list_double_max_double", "list(double).() double"),
            ("list_bool_max_bool", "list(bool).() bool"),
            ("list_duration_max_duration", "list(duration).() duration"),
            (
                "list_timestamp_max_timestamp",
                "list(timestamp).() timestamp",
            ),
            ("list_string_max_string", "list(string).() string"),
            ("list_bytes_max_bytes", "list(bytes).() bytes"),
        ],
    ),
    ("slice", &[("list_slice", "list(A).(int, int) list(A)")]),
    (
        "flatten",
        &[
            ("list_flatten", "list(list(A)).() list(A)"),
            ("list_flatten_int", "list(dyn).(int) list(dyn)"),
        ],
    ),
    ("lists.range", &[("lists_range", "(int) list(int)")]),
    ("distinct", &[("list_distinct", "list(A).() list(A)")]),
    ("reverse", &[("list_reverse", "list(A).() list(A)")]),
    (
        "sort",
        &[
            ("list_int_sort", "list(int).() list(int)"),
            ("list_uint_sort", "list(uint).() list(uint)"),
            ("list_double_sort", "list(double).() list(double)"),
            ("list_bool_sort", "list(bool).() list(bool)"),
            ("list_duration_sort", "list(duration).() list(duration)"),
            ("list_timestamp_sort", "list(timestamp).() list(timestamp)"),
            ("list_string_sort", "list(string).() list(string)"),
            ("list_bytes_sort", "list(bytes).() list(bytes)"),
        ],
    ),
    (
        operators::SORT_BY_KEYS,
        &[
            (
                "list_int_sortByAssociatedKeys",
                "list(A).(list(int)) list(A)",
            ),
            (
                "list_uint_sortByAssociatedKeys",
                "list(A).(list(uint)) list(A)",
            ),
            (
                "list_double_sortByAssociatedKeys",
                "list(A).(list(double)) list(A)",
            ),
            (
                "list_bool_sortByAssociatedKeys",
                "list(A).(list(bool)) list(A)",
            ),
            (
                "list_duration_sortByAssociatedKeys",
                "list(A).(list(duration)) list(A)",
            ),
            (
                "list_timestamp_sortByAssociatedKeys",
                "list(A).(list(timestamp)) list(A)",
            ),
            (
                "list_string_sortByAssociatedKeys",
                "list(A).(list(string)) list(A)",
            ),
            (
                "list_bytes_sortByAssociatedKeys",
                "list(A).(list(bytes)) list(A)",
            ),
        ],
    ),
    (
        "sets.contains",
        &[("list_sets_contains_list", "(list(A), list(A)) bool")],
    ),
    (
        "sets.equivalent",
        &[("list_sets_equivalent_list", "(list(A), list(A)) bool")],
    ),
    (
        "sets.intersects",
        &[("list_sets_intersects_list", "(list(A), list(A)) bool")],
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

/// Kubernetes' own functions.
const LIBRARIES: &[Function] = &[
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
