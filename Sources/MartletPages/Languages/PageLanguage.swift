internal import MartletCore

/// A language that pages are written in.
package enum PageLanguage: String, Sendable, CaseIterable {
    case english = "en"
    case simplifiedChinese = "zh-Hans"
    case traditionalChinese = "zh-Hant"

    /// The language of a tag such as `en-GB`, `zh-HK` or `zh-Hant-TW`; `nil` if pages are not written in it.
    ///
    /// A script decides over a region: `zh-Hans-HK` is simplified.
    package init?(tag: String) {
        guard let tag = LanguageTag(tag) else { return nil }
        let subtags = tag.text.split(separator: "-").dropFirst()
        switch tag.language {
        case "en": self = .english
        case "zh" where subtags.contains("Hans"): self = .simplifiedChinese
        case "zh" where subtags.contains { ["Hant", "TW", "HK", "MO"].contains($0) }: self = .traditionalChinese
        case "zh": self = .simplifiedChinese
        default: return nil
        }
    }

    /// The name of the language in that language.
    var name: String {
        switch self {
        case .english: "English"
        case .simplifiedChinese: "简体中文"
        case .traditionalChinese: "繁體中文"
        }
    }
}

/// The language of a page, and whether the user chose it.
package struct LanguageChoice: Sendable, Equatable {
    package let language: PageLanguage
    /// By the parameter `lang`, which the links and forms of the page then keep.
    package let isExplicit: Bool

    package init(_ language: PageLanguage, isExplicit: Bool = false) {
        self.language = language
        self.isExplicit = isExplicit
    }

    /// - Parameters:
    ///   - parameter: the value of `lang` in the query or the form; ignored if it is no language of ours.
    ///   - acceptLanguage: the value of `Accept-Language`; several fields are joined with commas.
    ///   - standard: the configured language.
    package init(parameter: String?, acceptLanguage: String?, standard: PageLanguage) {
        if let chosen = parameter.flatMap(PageLanguage.init(tag:)) {
            self.init(chosen, isExplicit: true)
        } else {
            self.init(acceptLanguage.flatMap { AcceptLanguage($0).preferred(standard: standard) } ?? standard)
        }
    }
}
