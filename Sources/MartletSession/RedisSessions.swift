package import MartletCore
package import MartletRedis

/// The sessions of all instances that share a Redis.
///
/// One question is one script and one round trip. All keys of a subject have the same hash tag, so that a Redis Cluster keeps them
/// on one node and a script may change several of them.
package final class RedisSessions: SessionBackend {
    private let client: RedisClient
    private let prefix: [UInt8]
    private let channel: [UInt8]

    /// - Parameter keyPrefix: `store.key_prefix`, before every key and the channel's name.
    package init(client: RedisClient, keyPrefix: String) {
        self.client = client
        prefix = Array(keyPrefix.utf8)
        channel = Array(RevocationMessage.channel(prefix: keyPrefix).utf8)
    }

    /// Files a session.
    package func insert(_ session: NewSession, at moment: SessionMoment) async throws(StoreError) -> [UInt64] {
        let index = index(of: session.subject)
        let reply = try await run(
            RedisSessionScripts.insert, [key(of: session.place), index], at: moment,
            [
                base(session.place.tagDigits), channel, digits(session.limit), session.place.filing,
                digits(session.ends), session.record, session.listing, session.providerMark, session.verifier,
                session.refreshWrap, field("a:", session.access.mark), value(session.access), session.note,
            ])
        return try numbers(reply)
    }

    /// Reads what an access token needs.
    package func use(
        _ place: SessionPlace, mark: [UInt8], note: [UInt8], at moment: SessionMoment
    ) async throws(StoreError) -> AccessReading {
        let reply = try await run(RedisSessionScripts.use, [key(of: place)], at: moment, [field("a:", mark), note])
        guard case .array(let parts) = reply, case .integer(let verdict)? = parts.first else { throw .nonsense }
        switch verdict {
        case 0: return .gone
        case 1: return .unknown
        case 2: return .expired
        default:
            guard parts.count == 3, case .bytes(let record) = parts[1], case .bytes(let held) = parts[2],
                let space = held.firstIndex(of: 0x20), let expiry = Int64(bytes: held[..<space])
            else { throw .nonsense }
            return .found(record: record, wrap: Array(held[(space + 1)...]), expiry: expiry)
        }
    }

    /// Reads what a refresh token needs.
    package func read(
        _ place: SessionPlace, mark: [UInt8], at moment: SessionMoment
    ) async throws(StoreError) -> RefreshReading? {
        let reply = try await run(RedisSessionScripts.read, [key(of: place), graceKey(place, mark)], at: moment, [])
        guard case .array(let parts) = reply else { throw .nonsense }
        guard !parts.isEmpty else { return nil }
        let fields: [[UInt8]] = parts.prefix(6).compactMap { if case .bytes(let bytes) = $0 { bytes } else { nil } }
        guard fields.count == 6, parts.count == 7, let ends = Int64(bytes: fields[0][...]),
            let lastSeen = Int64(bytes: fields[1][...]), let generation = Int64(bytes: fields[2][...])
        else { throw .nonsense }
        var grace: [UInt8]?
        if case .bytes(let sealed) = parts[6] { grace = sealed }
        return RefreshReading(
            ends: ends, lastSeen: lastSeen, generation: generation, record: fields[3], verifier: fields[4],
            refreshWrap: fields[5], grace: grace)
    }

    /// Exchanges the refresh token.
    package func rotate(
        _ place: SessionPlace, _ rotation: SessionRotation, at moment: SessionMoment
    ) async throws(StoreError) -> SessionRotation.Outcome {
        let grace = rotation.grace
        let reply = try await run(
            RedisSessionScripts.rotate, [key(of: place), graceKey(place, grace?.mark ?? [])], at: moment,
            [
                digits(rotation.generation), digits(rotation.generation.later(by: 1)), rotation.refreshWrap,
                field("a:", rotation.access.mark), value(rotation.access), digits(SessionRotation.maximumAccessTokens),
                digits(SessionRotation.maximumGraces), grace.map { field("q:", $0.mark) } ?? [],
                digits(grace?.end ?? 0), grace?.sealed ?? [], rotation.note,
            ])
        switch reply {
        case .integer(0): return .gone
        case .integer(1): return .lost
        case .integer(2): return .throttled
        case .integer(3): return .done
        default: throw .nonsense
        }
    }

    /// Notes a use.
    package func touch(_ place: SessionPlace, note: [UInt8], at moment: SessionMoment) async throws(StoreError) {
        _ = try await run(RedisSessionScripts.touch, [key(of: place)], at: moment, [note])
    }

    /// Ends one session; its index forgets it at the subject's next login or list.
    package func end(_ place: SessionPlace) async throws(StoreError) -> Bool {
        let moment = SessionMoment(now: 0, idle: 0, slack: 0)
        let reply = try await run(RedisSessionScripts.end, [key(of: place)], at: moment, [channel, place.filing])
        guard case .integer(let count) = reply else { throw .nonsense }
        return count > 0
    }

    /// The live sessions of a subject.
    package func list(
        _ subject: SubjectPlace, at moment: SessionMoment
    ) async throws(StoreError) -> [ListedSession] {
        let reply = try await run(
            RedisSessionScripts.list, [index(of: subject)], at: moment,
            [base(subject.tagDigits), digits(ListedSession.maximumCount)])
        guard case .array(let parts) = reply, parts.count % 5 == 0 else { throw .nonsense }
        return stride(from: 0, to: parts.count, by: 5).compactMap { start in
            guard case .bytes(let filing) = parts[start], case .bytes(let listing) = parts[start + 1],
                case .bytes(let ends) = parts[start + 2], let ends = Int64(bytes: ends[...]),
                case .bytes(let seen) = parts[start + 3], let seen = Int64(bytes: seen[...]),
                case .bytes(let note) = parts[start + 4]
            else { return nil }
            return ListedSession(filing: filing, listing: listing, ends: ends, lastSeen: seen, note: note)
        }
    }

    /// Ends some of a subject's sessions.
    package func end(
        _ selection: SessionSelection, of subject: SubjectPlace, at moment: SessionMoment
    ) async throws(StoreError) -> [UInt64] {
        let reply = try await run(
            RedisSessionScripts.endSome, [index(of: subject)], at: moment,
            [
                base(subject.tagDigits), channel, selection.id ?? [], selection.providerMark ?? [],
                selection.kept ?? [],
            ])
        return try numbers(reply)
    }

    private func run(
        _ script: RedisScript, _ keys: [[UInt8]], at moment: SessionMoment, _ arguments: [[UInt8]]
    ) async throws(StoreError) -> RedisReply {
        let times = [digits(moment.now), digits(moment.idle), digits(moment.slack)]
        return try await client.run(script, keys: keys, arguments: times + arguments, expecting: .anything)
    }

    private func numbers(_ reply: RedisReply) throws(StoreError) -> [UInt64] {
        guard case .array(let filings) = reply else { throw .nonsense }
        return filings.compactMap { filing in
            if case .bytes(let filing) = filing { Hexadecimal.value(filing.prefix(16)) } else { nil }
        }
    }

    private func base(_ tagDigits: [UInt8]) -> [UInt8] { prefix + "{".utf8 + tagDigits + "}:s:".utf8 }
    private func key(of place: SessionPlace) -> [UInt8] { prefix + place.name }
    private func index(of subject: SubjectPlace) -> [UInt8] {
        prefix + "{".utf8 + subject.tagDigits + "}:i:".utf8 + subject.name
    }
    private func graceKey(_ place: SessionPlace, _ mark: [UInt8]) -> [UInt8] {
        prefix + "{".utf8 + place.tagDigits + "}:g:".utf8 + place.filing + ":".utf8 + mark
    }

    private func field(_ kind: String, _ mark: [UInt8]) -> [UInt8] { Array(kind.utf8) + mark }
    private func value(_ wrap: AccessWrap) -> [UInt8] { digits(wrap.expiry) + " ".utf8 + wrap.sealed }
    private func digits(_ number: some BinaryInteger) -> [UInt8] { Array(String(number).utf8) }
}

extension StoreError {
    fileprivate static let nonsense = StoreError(
        code: .redisReplyUnexpected, message: "Redis answered a session script with something else")
}

extension Int64 {
    fileprivate init?(bytes: ArraySlice<UInt8>) {
        guard let value = Int64(String(decoding: bytes, as: UTF8.self)) else { return nil }
        self = value
    }
}
