//! Functions of lists.

use crate::cel::functions::signature::Function;
use crate::cel::operators;

/// Functions of lists; some are of texts too.
pub(super) const LISTS: &[Function] = &[
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
