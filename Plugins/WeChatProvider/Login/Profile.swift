internal import MartletConfig
internal import MartletCore
internal import MartletJSON

/// A user's nickname and avatar at WeChat, sanitized for display.
struct Profile: Sendable, Equatable {
    private static let maximumNameScalars = 64
    private static let maximumNameBytes = 256
    private static let maximumURLBytes = 1024

    let nickname: String?
    let avatar: String?

    static let empty = Profile(nickname: nil, avatar: nil)

    init(nickname: String?, avatar: String?) {
        self.nickname = nickname.flatMap(Self.sanitized)
        self.avatar = avatar.flatMap(Self.httpsURL)
    }

    /// The name without control, direction and line-break characters, and of bounded length; `nil` if nothing is left.
    private static func sanitized(_ name: String) -> String? {
        var text = String.UnicodeScalarView()
        var bytes = 0
        for scalar in name.unicodeScalars {
            guard let allowed = allowed(scalar), !(allowed == " " && (text.isEmpty || text.last == " ")) else {
                continue
            }
            bytes += UTF8.width(allowed)
            guard text.count < maximumNameScalars, bytes <= maximumNameBytes else { break }
            text.append(allowed)
        }
        while text.last == " " { text.removeLast() }
        return text.isEmpty ? nil : String(text)
    }

    private static func allowed(_ scalar: Unicode.Scalar) -> Unicode.Scalar? {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator, .spaceSeparator: " "
        // Emoji and some scripts need the joiners; the others are direction marks and the like.
        case .format: scalar == "\u{200C}" || scalar == "\u{200D}" ? scalar : nil
        case .surrogate, .privateUse, .unassigned: nil
        default: scalar
        }
    }

    /// The URL if it is a valid https one.
    private static func httpsURL(_ url: String) -> String? {
        guard url.utf8.count <= maximumURLBytes, let parsed = URLText(url), parsed.scheme == "https" else { return nil }
        return parsed.text
    }
}
