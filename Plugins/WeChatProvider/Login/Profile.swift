internal import MartletConfig
internal import MartletCore
internal import MartletJSON

/// What WeChat says about a person beside who it is, fit for being shown.
struct Profile: Sendable, Equatable {
    private static let maximumNameScalars = 64
    private static let maximumNameBytes = 256
    private static let maximumURLBytes = 1024

    let nickname: String?
    let avatar: String?

    static let nothing = Profile(nickname: nil, avatar: nil)

    init(nickname: String?, avatar: String?) {
        self.nickname = nickname.flatMap(Self.shown)
        self.avatar = avatar.flatMap(Self.secure)
    }

    /// Without what hides, turns around or breaks the text beside it, and of a bounded length; `nil` if nothing is left.
    private static func shown(_ name: String) -> String? {
        var text = String.UnicodeScalarView()
        var bytes = 0
        for scalar in name.unicodeScalars {
            guard let kept = kept(scalar), !(kept == " " && (text.isEmpty || text.last == " ")) else { continue }
            bytes += UTF8.width(kept)
            guard text.count < maximumNameScalars, bytes <= maximumNameBytes else { break }
            text.append(kept)
        }
        while text.last == " " { text.removeLast() }
        return text.isEmpty ? nil : String(text)
    }

    private static func kept(_ scalar: Unicode.Scalar) -> Unicode.Scalar? {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator, .spaceSeparator: " "
        // The joiners belong to emoji and to some scripts; the rest are marks of direction and the like.
        case .format: scalar == "\u{200C}" || scalar == "\u{200D}" ? scalar : nil
        case .surrogate, .privateUse, .unassigned: nil
        default: scalar
        }
    }

    /// An https URL that is one.
    private static func secure(_ url: String) -> String? {
        guard url.utf8.count <= maximumURLBytes, let parsed = URLText(url), parsed.scheme == "https" else { return nil }
        return parsed.text
    }
}
