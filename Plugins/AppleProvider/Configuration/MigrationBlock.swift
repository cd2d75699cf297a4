internal import MartletConfig
internal import MartletCore

/// `migration`: the team that the app belonged to, and until when its users are recognized.
struct MigrationBlock: ConfigurationDecodable {
    let fromTeam: Located<DeveloperID>
    let until: LastDay

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        fromTeam = try reader.required("from_team")
        until = try reader.required("until")
    }

    static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .required("from_team", DeveloperID.shape, "The id of the team that the app belonged to."),
            .required(
                "until", LastDay.shape,
                "The last day, in UTC, on which users of that team are recognized: 60 days after the transfer."),
        ])
    }
}

/// A day as `2027-03-01`, from 1970 on.
struct LastDay: ConfigurationValue {
    static let shape = ConfigurationGrammar.Shape.pattern("^[0-9]{4}-[0-9]{2}-[0-9]{2}$")
    private static let daySeconds: Int64 = 86_400

    /// The end of the day, in UTC.
    let end: UnixTime

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        guard let days = Self.days(try node.text()) else {
            throw node.error(.configBadValue, "must be a day such as 2027-03-01")
        }
        end = UnixTime(seconds: (days + 1) * Self.daySeconds)
    }

    /// The days since 1970; `nil` if it is not a day of the Gregorian calendar from 1970 on.
    private static func days(_ text: String) -> Int64? {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.map(\.utf8.count) == [4, 2, 2],
            parts.allSatisfy({ $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }),
            let year = Int64(parts[0]), let month = Int64(parts[1]), let day = Int64(parts[2]),
            year >= 1970, (1...12).contains(month)
        else { return nil }
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let lengths: [Int64] = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        guard day >= 1, day <= lengths[Int(month) - 1] else { return nil }
        // Every fourth year since 1968 has had a leap day, except for three in 400 years.
        let before = year - 1
        let leapDays = (before / 4 - before / 100 + before / 400) - (1969 / 4 - 1969 / 100 + 1969 / 400)
        return (year - 1970) * 365 + leapDays + lengths.prefix(Int(month) - 1).reduce(0, +) + day - 1
    }
}
