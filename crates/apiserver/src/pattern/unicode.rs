//! The names of Unicode's sets.

/// A set of characters by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    Category(&'static str),
    Script(&'static str),
    Special(&'static str),
}

/// General categories: the short name and the long ones.
const CATEGORIES: [(&str, &[&str]); 38] = [
    ("C", &["other"]),
    ("Cc", &["control", "cntrl"]),
    ("Cf", &["format"]),
    ("Cn", &["unassigned"]),
    ("Co", &["privateuse"]),
    ("Cs", &["surrogate"]),
    ("L", &["letter"]),
    ("LC", &["casedletter"]),
    ("Ll", &["lowercaseletter"]),
    ("Lm", &["modifierletter"]),
    ("Lo", &["otherletter"]),
    ("Lt", &["titlecaseletter"]),
    ("Lu", &["uppercaseletter"]),
    ("M", &["mark", "combiningmark"]),
    ("Mc", &["spacingmark"]),
    ("Me", &["enclosingmark"]),
    ("Mn", &["nonspacingmark"]),
    ("N", &["number"]),
    ("Nd", &["decimalnumber", "digit"]),
    ("Nl", &["letternumber"]),
    ("No", &["othernumber"]),
    ("P", &["punctuation", "punct"]),
    ("Pc", &["connectorpunctuation"]),
    ("Pd", &["dashpunctuation"]),
    ("Pe", &["closepunctuation"]),
    ("Pf", &["finalpunctuation"]),
    ("Pi", &["initialpunctuation"]),
    ("Po", &["otherpunctuation"]),
    ("Ps", &["openpunctuation"]),
    ("S", &["symbol"]),
    ("Sc", &["currencysymbol"]),
    ("Sk", &["modifiersymbol"]),
    ("Sm", &["mathsymbol"]),
    ("So", &["othersymbol"]),
    ("Z", &["separator"]),
    ("Zl", &["lineseparator"]),
    ("Zp", &["paragraphseparator"]),
    ("Zs", &["spaceseparator"]),
];

const SPECIAL: [&str; 3] = ["any", "assigned", "ascii"];

const SCRIPTS: &str = "Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum \
    Bassa_Vah Batak Bengali Bhaiksuki Bopomofo Brahmi Braille Buginese Buhid Canadian_Aboriginal \
    Carian Caucasian_Albanian Chakma Cham Cherokee Chorasmian Common Coptic Cuneiform Cypriot \
    Cypro_Minoan Cyrillic Deseret Devanagari Dives_Akuru Dogra Duployan Egyptian_Hieroglyphs Elbasan \
    Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati Gunjala_Gondi Gurmukhi Han \
    Hangul Hanifi_Rohingya Hanunoo Hatran Hebrew Hiragana Imperial_Aramaic Inherited \
    Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada Katakana Kawi Kayah_Li \
    Kharoshthi Khitan_Small_Script Khmer Khojki Khudawadi Lao Latin Lepcha Limbu Linear_A Linear_B \
    Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean Marchen Masaram_Gondi \
    Medefaidrin Meetei_Mayek Mende_Kikakui Meroitic_Cursive Meroitic_Hieroglyphs Miao Modi Mongolian \
    Mro Multani Myanmar Nabataean Nag_Mundari Nandinagari New_Tai_Lue Newa Nko Nushu \
    Nyiakeng_Puachue_Hmong Ogham Ol_Chiki Old_Hungarian Old_Italic Old_North_Arabian Old_Permic \
    Old_Persian Old_Sogdian Old_South_Arabian Old_Turkic Old_Uyghur Oriya Osage Osmanya Pahawh_Hmong \
    Palmyrene Pau_Cin_Hau Phags_Pa Phoenician Psalter_Pahlavi Rejang Runic Samaritan Saurashtra \
    Sharada Shavian Siddham SignWriting Sinhala Sogdian Sora_Sompeng Soyombo Sundanese Syloti_Nagri \
    Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Takri Tamil Tangsa Tangut Telugu Thaana Thai \
    Tibetan Tifinagh Tirhuta Toto Ugaritic Vai Vithkuqi Wancho Warang_Citi Yezidi Yi Zanabazar_Square";

/// The set of this name. None if Go knows none.
pub(super) fn table_of(name: &str) -> Option<Table> {
    let name = plain(name);
    let mut categories = CATEGORIES.iter();
    let category =
        categories.find(|(short, long)| plain(short) == name || long.contains(&name.as_str()));
    if let Some((short, _)) = category {
        return Some(Table::Category(short));
    }
    if let Some(special) = SPECIAL.into_iter().find(|special| *special == name) {
        return Some(Table::Special(special));
    }
    let mut scripts = SCRIPTS.split_whitespace();
    scripts
        .find(|script| plain(script) == name)
        .map(Table::Script)
}

/// A name without what does not count in it.
fn plain(name: &str) -> String {
    let counts = |c: &char| !matches!(c, ' ' | '_' | '-');
    name.chars()
        .filter(counts)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

// === impl Table ===

impl Table {
    /// As the library reads it.
    pub(super) fn shown(self) -> String {
        match self {
            // No text has a surrogate.
            Self::Category("Cs") => String::new(),
            Self::Category(name) => format!(r"\p{{gc={name}}}"),
            Self::Script(name) => format!(r"\p{{sc={name}}}"),
            Self::Special(name) => format!(r"\p{{{name}}}"),
        }
    }
}
