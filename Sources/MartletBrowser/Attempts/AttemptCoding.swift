private import MartletCore

/// The binary form of a sign-in, before it is sealed.
enum AttemptCoding {
    /// Of the form below; another version is not read, and the user signs in again.
    private static let version: UInt8 = 3
    private static let isApp: UInt8 = 0x80
    private static let hasState: UInt8 = 0x40
    private static let hasSession: UInt8 = 0x20

    /// The length of the encoded form.
    static func size(_ attempt: SignInAttempt) -> Int {
        let session = attempt.session.map { 4 + $0.subject.utf8.count + $0.id.utf8.count } ?? 0
        let fixed = 1 + 1 + 8 + SignInAttempt.seedLength + 1 + attempt.provider.utf8.count + session
        switch attempt.destination {
        case .page(let target): return fixed + 2 + target.utf8.count
        case .app(let app):
            return fixed + 2 + app.redirect.utf8.count + CodeChallenge.length + 2 + (app.state?.utf8.count ?? 0)
        }
    }

    /// Whether every text has a length that can be encoded.
    static func isEncodable(_ attempt: SignInAttempt) -> Bool {
        guard attempt.provider.utf8.count <= SignInAttempt.maximumProviderBytes else { return false }
        return size(attempt) <= AttemptSeal.maximumContent
    }

    static func encode(_ attempt: SignInAttempt) -> [UInt8] {
        var bytes = [version]
        append(attempt, to: &bytes)
        return bytes
    }

    private static func append(_ attempt: SignInAttempt, to bytes: inout [UInt8]) {
        var flags = attempt.purpose.rawValue
        if case .app(let app) = attempt.destination { flags |= isApp | (app.state == nil ? 0 : hasState) }
        if attempt.session != nil { flags |= hasSession }
        bytes.append(flags)
        for shift in stride(from: 56, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: attempt.created.seconds >> Int64(shift)))
        }
        attempt.seed.withBytes { bytes += $0 }
        bytes.append(UInt8(truncatingIfNeeded: attempt.provider.utf8.count))
        bytes += attempt.provider.utf8
        if let session = attempt.session {
            append(session.subject, to: &bytes)
            append(session.id, to: &bytes)
        }
        switch attempt.destination {
        case .page(let target): append(target, to: &bytes)
        case .app(let app):
            append(app.redirect, to: &bytes)
            bytes += app.challenge.bytes
            append(app.state ?? "", to: &bytes)
        }
    }

    private static func append(_ text: String, to bytes: inout [UInt8]) {
        bytes.append(UInt8(truncatingIfNeeded: text.utf8.count >> 8))
        bytes.append(UInt8(truncatingIfNeeded: text.utf8.count))
        bytes += text.utf8
    }

    /// `nil` for anything but a whole encoded form.
    static func decode(_ bytes: [UInt8]) -> SignInAttempt? {
        guard bytes.first == version else { return nil }
        var rest = bytes.dropFirst()
        guard let attempt = attempt(&rest), rest.isEmpty else { return nil }
        return attempt
    }

    private static func attempt(_ rest: inout ArraySlice<UInt8>) -> SignInAttempt? {
        guard let flags = take(1, &rest)?.first,
            let purpose = SignInAttempt.Purpose(rawValue: flags & ~(isApp | hasState | hasSession)),
            let created = take(8, &rest), let seed = take(SignInAttempt.seedLength, &rest),
            let length = take(1, &rest)?.first, let provider = text(Int(length), &rest)
        else { return nil }
        var session: SignInAttempt.Session?
        if flags & hasSession != 0 {
            guard let subject = text(&rest), let id = text(&rest) else { return nil }
            session = SignInAttempt.Session(subject: subject, id: id)
        }
        guard let target = text(&rest) else { return nil }
        var destination = SignInAttempt.Destination.page(target)
        if flags & isApp != 0 {
            guard let hash = take(CodeChallenge.length, &rest), let challenge = CodeChallenge(bytes: Array(hash)),
                let state = text(&rest)
            else { return nil }
            destination = .app(
                AppRequest(redirect: target, challenge: challenge, state: flags & hasState == 0 ? nil : state))
        }
        return SignInAttempt(
            provider: provider, purpose: purpose, destination: destination, session: session,
            created: UnixTime(seconds: created.reduce(0) { $0 << 8 | Int64($1) }), seed: Secret(Array(seed)))
    }

    private static func text(_ rest: inout ArraySlice<UInt8>) -> String? {
        take(2, &rest).flatMap { text($0.reduce(0) { $0 << 8 | Int($1) }, &rest) }
    }

    private static func text(_ count: Int, _ rest: inout ArraySlice<UInt8>) -> String? {
        take(count, &rest).flatMap { String(validating: $0, as: UTF8.self) }
    }

    private static func take(_ count: Int, _ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }
}
