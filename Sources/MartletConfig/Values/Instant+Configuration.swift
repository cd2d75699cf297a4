public import MartletCore

extension UnixTime: ConfigurationValue, Spelling {
    /// `2026-12-24T18:00:00Z`, `2026-12-24T18:00:00+08:00`: an instant as RFC 3339 writes it.
    public init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.text()
        guard let seconds = InternetTime.seconds(of: text) else {
            throw node.error(.configBadValue, "\(quoted(text)) is not an instant such as 2026-12-24T18:00:00Z")
        }
        self.init(seconds: seconds)
    }
}
