package import MartletCore
package import MartletRedis

/// The session backend of all instances that share a Redis server.
///
/// Each operation is one script and one round trip. All keys of a subject share a hash tag, so that a Redis Cluster
/// stores them on one node and a script may modify several of them.
package final class RedisSessions: SessionBackend {
    private let client: RedisClient
    private let prefix: [UInt8]
    private let channel: [UInt8]
    /// Seals published messages; `nil` without `store.seal`.
    private let seal: StoreSeal?

    /// - Parameters:
    ///   - keyPrefix: `store.key_prefix`, the prefix of every key and of the channel name.
    ///   - seal: `nil` without `store.seal`.
    package init(client: RedisClient, keyPrefix: String, seal: StoreSeal? = nil) {
        (self.client, self.seal) = (client, seal)
        prefix = Array(keyPrefix.utf8)
        channel = Array(RevocationMessage.channel(prefix: keyPrefix).utf8)
    }

    package var findsMarks: Bool { true }

    /// Inserts a session.
    package func insert(_ session: NewSession, at time: SessionTime) async throws(StoreError) -> Insertion {
        let tag = session.sessionKey.tagDigits
        let keys = [key(of: session.sessionKey), subjectKey(tag)]
        let reply = try await run(
            RedisSessionScripts.insert, keys + (session.mark.map { [Array($0.key.utf8)] } ?? []), at: time,
            [
                base(session.sessionKey.tagDigits), channel, digits(session.limit), session.sessionKey.keyHash,
                digits(session.ends), session.record, session.listing, session.providerHash + session.applicationHash,
                session.verifier,
                session.refreshWrap, field("a:", session.access.tokenHash), value(session.access), session.lastAddress,
                session.owner, digits(session.evicts ? 1 : 0), digits(session.mark?.number ?? 0),
                session.subject.name,
            ] + announcement)
        let parts: [RedisReply]
        switch reply {
        case .integer(1): return .overtaken
        case .array(let list) where list.count == 2: parts = list
        case .array(let list) where list.count == 1:
            guard case .array(let surplus)? = list.first else { throw .unexpectedReply }
            return .full(surplus: surplus.compactMap { if case .bytes(let keyHash) = $0 { keyHash } else { nil } })
        default: throw .unexpectedReply
        }
        record(session, at: time)
        let numbers = try ended(parts[1], tagDigits: tag)
        await announce(numbers)
        var version: Int64?
        if session.readsClaims, case .bytes(let digits) = parts[0] { version = Int64(bytes: digits[...]) }
        return .inserted(ended: numbers, claimsVersion: version)
    }

    /// Looks up the session of an access token and updates its last use.
    package func lookUpAndTouch(
        _ sessionKey: SessionKey, tokenHash: [UInt8], lastAddress: [UInt8], readsClaims: Bool, at time: SessionTime
    ) async throws(StoreError) -> AccessLookup {
        let keys = [key(of: sessionKey)] + (readsClaims ? [subjectKey(sessionKey.tagDigits)] : [])
        let reply = try await run(
            RedisSessionScripts.lookUpAndTouch, keys, at: time, [field("a:", tokenHash), lastAddress])
        guard case .array(let parts) = reply, case .integer(let status)? = parts.first else { throw .unexpectedReply }
        switch status {
        case 0: return .gone
        case 1: return .unknown
        case 4: return malformed(.gone)
        default:
            guard parts.count == 4, case .bytes(let record) = parts[1], case .bytes(let access) = parts[2],
                case .bytes(let claims) = parts[3]
            else { throw .unexpectedReply }
            guard let space = access.firstIndex(of: 0x20), let expiry = Int64(bytes: access[..<space]) else {
                return malformed(.unknown)
            }
            let found = FoundSession(
                record: record, wrap: Array(access[(space + 1)...]), expiry: expiry, claims: claims)
            return status == 2 ? .expired(found) : .found(found)
        }
    }

    /// Stores the claims of a subject's account.
    package func storeClaims(
        _ claims: StoredClaims, of subject: SubjectKey, at time: SessionTime
    ) async throws(StoreError) -> [UInt64]? {
        let reply = try await run(
            RedisSessionScripts.storeClaims, [subjectKey(subject.tagDigits)], at: time,
            [
                base(subject.tagDigits), channel, digits(claims.version), claims.bytes, digits(claims.ends),
                Array(RevocationMessage.changePrefix.utf8), subject.name,
            ] + announcement)
        if case .integer(0) = reply { return nil }
        let numbers = try revocationIDs(reply)
        await announce(numbers, areChanged: true)
        return numbers
    }

    /// Reads the state that a refresh needs.
    package func read(
        _ sessionKey: SessionKey, tokenHash: [UInt8], readsClaims: Bool, at time: SessionTime
    ) async throws(StoreError) -> RefreshLookup? {
        let keys = [key(of: sessionKey), graceKey(sessionKey, tokenHash)]
        let reply = try await run(
            RedisSessionScripts.read, keys + (readsClaims ? [subjectKey(sessionKey.tagDigits)] : []), at: time,
            [field("q:", tokenHash)])
        guard case .array(let parts) = reply else { throw .unexpectedReply }
        guard !parts.isEmpty else { return nil }
        let fields: [[UInt8]] = parts.prefix(9).compactMap { if case .bytes(let bytes) = $0 { bytes } else { nil } }
        guard fields.count == 9, parts.count == 10, let ends = Int64(bytes: fields[0][...]),
            let lastSeen = Int64(bytes: fields[1][...]), let generation = Int64(bytes: fields[2][...])
        else { return malformed(nil) }
        var grace: [UInt8]?
        if case .bytes(let sealed) = parts[9] { grace = sealed }
        return RefreshLookup(
            ends: ends, lastSeen: lastSeen, generation: generation, record: fields[3], verifier: fields[4],
            refreshWrap: fields[5], grace: grace, graceEnd: Int64(bytes: fields[7][...]), owner: fields[6],
            claims: fields[8])
    }

    /// Rotates the refresh token or the cookie token.
    package func rotate(
        _ sessionKey: SessionKey, _ rotation: SessionRotation, at time: SessionTime
    ) async throws(StoreError) -> SessionRotation.Outcome {
        let grace = rotation.grace
        let keys = [key(of: sessionKey), graceKey(sessionKey, grace?.tokenHash ?? [])]
        let arguments =
            [
                digits(rotation.generation), digits(rotation.generation.later(by: 1)), rotation.refreshWrap,
                rotation.access.map { field("a:", $0.tokenHash) } ?? [], rotation.access.map(value) ?? [],
                digits(SessionRotation.maximumAccessTokens), digits(SessionRotation.maximumGraces),
                grace.map { field("q:", $0.tokenHash) } ?? [], digits(grace?.end ?? 0), grace?.sealed ?? [],
                rotation.lastAddress, rotation.replacedWrap,
            ]
            + (rotation.cookie.map { self.arguments(of: $0, sessionKey) } ?? rotation.binding.map(arguments(of:)) ?? [])
        let reply = try await run(RedisSessionScripts.rotate, keys, at: time, arguments)
        switch reply {
        case .integer(0): return .gone
        case .integer(1): return .lost
        case .integer(2): return .throttled
        case .integer(3):
            // Rotates again only what is of the same generation still.
            record(RedisSessionScripts.rotate, keys, at: time, arguments, of: sessionKey)
            return .done
        default: throw .unexpectedReply
        }
    }

    /// What the script needs for a cookie token only.
    private func arguments(of change: SessionRotation.CookieChange, _ sessionKey: SessionKey) -> [[UInt8]] {
        [
            digits(change.graceEnd), graceKey(sessionKey, []), change.record ?? [], channel,
            changeMessage(sessionKey),
        ]
    }

    /// What the script needs to bind a session to a key: nothing of a cookie token's, and the record.
    private func arguments(of binding: RecordReplacement) -> [[UInt8]] {
        [[], [], binding.record, [], [], binding.expected]
    }

    /// Replaces the record.
    package func replace(
        _ sessionKey: SessionKey, _ replacement: RecordReplacement, at time: SessionTime
    ) async throws(StoreError) -> RecordReplacement.Outcome {
        let arguments = [replacement.expected, replacement.record, channel, changeMessage(sessionKey)]
        let reply = try await run(RedisSessionScripts.replace, [key(of: sessionKey)], at: time, arguments)
        switch reply {
        case .integer(0): return .gone
        case .integer(1): return .lost
        case .integer(2):
            // Replaces only the same record again.
            record(RedisSessionScripts.replace, [key(of: sessionKey)], at: time, arguments, of: sessionKey)
            return .done
        default: throw .unexpectedReply
        }
    }

    /// Updates the last use.
    package func touch(_ sessionKey: SessionKey, lastAddress: [UInt8], at time: SessionTime) async throws(StoreError) {
        _ = try await run(RedisSessionScripts.touch, [key(of: sessionKey)], at: time, [lastAddress])
    }

    /// Ends one session; the index entry is removed at the subject's next login or list.
    package func end(_ sessionKey: SessionKey) async throws(StoreError) -> Bool {
        let time = SessionTime(now: 0, idle: 0, slack: 0)
        let endMessage = seal == nil ? [] : [message(Array(sessionKey.keyHash.prefix(16)))]
        let reply = try await run(
            RedisSessionScripts.end, [key(of: sessionKey), endKey(sessionKey)], at: time,
            [channel, sessionKey.keyHash] + endMessage)
        guard case .integer(let count) = reply else { throw .unexpectedReply }
        client.record([endAgain(sessionKey)])
        return count > 0
    }

    /// Ends a session that was not found: where the master is new to an instance, another one may write it again, and
    /// the next master may have it.
    package func endAbsent(_ sessionKey: SessionKey) async throws(StoreError) {
        let replay = endAgain(sessionKey, .endOfAbsent)
        if client.mayMissWrites { try await client.repeatNow(replay) }
        client.record([replay])
    }

    /// Finds a session by the digits of its ID: the names of all keys are compared.
    package func find(_ digits: [UInt8]) async throws(StoreError) -> SessionKey? {
        let pattern = RedisClient.pattern(matching: prefix) + "{*}:s".utf8 + digits
        guard let name = try await client.name(matching: pattern) else { return nil }
        let tag = name.dropFirst(prefix.count + 1).prefix(2 * SubjectKey.tagLength)
        let found = SessionKey(tagDigits: Array(tag), keyHash: digits)
        return name == key(of: found) ? found : nil
    }

    /// Lists the live sessions of a subject.
    package func list(
        _ subject: SubjectKey, from start: SessionPosition?, at time: SessionTime
    ) async throws(StoreError) -> [ListedSession] {
        let reply = try await run(
            RedisSessionScripts.list, [subjectKey(subject.tagDigits)], at: time,
            [
                base(subject.tagDigits), digits(ListedSession.maximumCount), start.map { digits($0.order) } ?? [],
                subject.name,
            ])
        guard case .array(let parts) = reply, parts.count % 6 == 0 else { throw .unexpectedReply }
        return stride(from: 0, to: parts.count, by: 6).compactMap { start in
            guard case .bytes(let keyHash) = parts[start], case .bytes(let listing) = parts[start + 1],
                case .bytes(let ends) = parts[start + 2], let ends = Int64(bytes: ends[...]),
                case .bytes(let seen) = parts[start + 3], let seen = Int64(bytes: seen[...]),
                case .bytes(let lastAddress) = parts[start + 4], case .bytes(let order) = parts[start + 5],
                let order = Int64(bytes: order[...])
            else { return nil }
            return ListedSession(
                keyHash: keyHash, listing: listing, ends: ends, lastSeen: seen, lastAddress: lastAddress,
                position: SessionPosition(order: order))
        }
    }

    /// Ends the selected sessions of a subject.
    package func end(
        _ selection: SessionSelection, of subject: SubjectKey, at time: SessionTime
    ) async throws(StoreError) -> [UInt64] {
        let reply = try await run(
            RedisSessionScripts.endSome, [subjectKey(subject.tagDigits)], at: time,
            [
                base(subject.tagDigits), channel, selection.id ?? [], selection.providerHash ?? [],
                selection.excluded ?? [], subject.name,
            ] + announcement)
        let numbers = try ended(reply, tagDigits: subject.tagDigits)
        await announce(numbers)
        return numbers
    }

    /// A session that cannot be read is a miss, like one that does not verify.
    private func malformed<Lookup>(_ miss: Lookup) -> Lookup {
        client.failures.record(.session, .malformed)
        return miss
    }

    private func run(
        _ script: RedisScript, _ keys: [[UInt8]], at time: SessionTime, _ arguments: [[UInt8]]
    ) async throws(StoreError) -> RedisReply {
        let times = [digits(time.now), digits(time.idle), digits(time.slack)]
        return try await client.run(script, keys: keys, arguments: times + arguments, expecting: .anything)
    }

    /// The sessions that a script has ended.
    private func ended(_ reply: RedisReply, tagDigits: [UInt8]) throws(StoreError) -> [UInt64] {
        let numbers = try revocationIDs(reply)
        guard case .array(let keyHashes) = reply, !keyHashes.isEmpty else { return numbers }
        client.record(
            keyHashes.compactMap { keyHash in
                guard case .bytes(let keyHash) = keyHash else { return nil }
                return endAgain(SessionKey(tagDigits: tagDigits, keyHash: keyHash))
            })
        return numbers
    }

    private func endAgain(_ sessionKey: SessionKey, _ kind: RedisReplay.Kind = .end) -> RedisReplay {
        RedisReplay(
            kind, RedisSessionScripts.endAgain, keys: [key(of: sessionKey), endKey(sessionKey)],
            arguments: [channel, message(Array(sessionKey.keyHash.prefix(16)))], number: sessionKey.revocationID)
    }

    private func record(_ session: NewSession, at time: SessionTime) {
        var fields: [[UInt8]] = []
        func add(_ name: String, _ value: [UInt8]) { fields += [Array(name.utf8), value] }
        add("s", digits(time.now))
        add("g", digits(0))
        add("x", digits(session.ends))
        add("d", session.record)
        add("m", session.listing)
        add("p", session.providerHash + session.applicationHash)
        add("v", session.verifier)
        add("r", session.refreshWrap)
        fields += [field("a:", session.access.tokenHash), value(session.access)]
        if !session.lastAddress.isEmpty { add("l", session.lastAddress) }
        if !session.owner.isEmpty { add("o", session.owner) }
        let key = session.sessionKey
        let expiry = min(session.ends, time.now.later(by: time.idle))
        client.record([
            RedisReplay(
                .write, RedisSessionScripts.insertAgain,
                keys: [self.key(of: key), subjectKey(key.tagDigits), endKey(key)],
                arguments: [digits(time.now), digits(session.ends), digits(expiry), key.keyHash, session.subject.name]
                    + fields,
                number: key.revocationID)
        ])
    }

    /// - Parameter script: changes nothing a second time.
    private func record(
        _ script: RedisScript, _ keys: [[UInt8]], at time: SessionTime, _ arguments: [[UInt8]],
        of sessionKey: SessionKey
    ) {
        let times = [digits(time.now), digits(time.idle), digits(time.slack)]
        client.record([
            RedisReplay(.write, script, keys: keys, arguments: times + arguments, number: sessionKey.revocationID)
        ])
    }

    private func revocationIDs(_ reply: RedisReply) throws(StoreError) -> [UInt64] {
        guard case .array(let keyHashes) = reply else { throw .unexpectedReply }
        return keyHashes.compactMap { keyHash in
            if case .bytes(let keyHash) = keyHash { Hexadecimal.value(keyHash.prefix(16)) } else { nil }
        }
    }

    private func changeMessage(_ sessionKey: SessionKey) -> [UInt8] {
        message(Array(RevocationMessage.changePrefix.utf8) + sessionKey.keyHash.prefix(16))
    }

    private func message(_ content: [UInt8]) -> [UInt8] { seal?.seal(message: content, on: channel) ?? content }

    /// What a script publishes that finds out itself which sessions end or change, where messages are sealed: scripts
    /// have no key. It is empty, and proves before the first write that publishing is permitted.
    private var announcement: [[UInt8]] { seal == nil ? [] : [message([])] }

    /// Publishes what such a script has ended or changed.
    ///
    /// It is done, and this instance drops its copies in any case: if the message is lost, those of others expire.
    private func announce(_ numbers: [UInt64], areChanged: Bool = false) async {
        guard seal != nil, !numbers.isEmpty else { return }
        for start in stride(from: 0, to: numbers.count, by: RevocationMessage.maximumCount) {
            let some = Array(numbers[start...].prefix(RevocationMessage.maximumCount))
            let content = areChanged ? RevocationMessage.bytes(changed: some) : RevocationMessage.bytes(some)
            try? await client.publish(message(content), on: channel)
        }
    }

    private func base(_ tagDigits: [UInt8]) -> [UInt8] { prefix + "{".utf8 + tagDigits + "}:s".utf8 }
    private func key(of sessionKey: SessionKey) -> [UInt8] { prefix + sessionKey.name }
    private func subjectKey(_ tagDigits: [UInt8]) -> [UInt8] { prefix + "{".utf8 + tagDigits + "}:u".utf8 }
    private func endKey(_ sessionKey: SessionKey) -> [UInt8] {
        prefix + "{".utf8 + sessionKey.tagDigits + "}:e:".utf8 + sessionKey.keyHash
    }
    private func graceKey(_ sessionKey: SessionKey, _ tokenHash: [UInt8]) -> [UInt8] {
        prefix + "{".utf8 + sessionKey.tagDigits + "}:g:".utf8 + sessionKey.keyHash + ":".utf8 + tokenHash
    }

    private func field(_ kind: String, _ tokenHash: [UInt8]) -> [UInt8] { Array(kind.utf8) + tokenHash }
    private func value(_ wrap: AccessWrap) -> [UInt8] { digits(wrap.expiry) + " ".utf8 + wrap.sealed }
    private func digits(_ number: some BinaryInteger) -> [UInt8] { Array(String(number).utf8) }
}

extension StoreError {
    fileprivate static let unexpectedReply = StoreError(
        code: .redisReplyUnexpected, message: "unexpected reply to a session script")
}

extension Int64 {
    fileprivate init?(bytes: ArraySlice<UInt8>) {
        guard let value = Int64(String(decoding: bytes, as: UTF8.self)) else { return nil }
        self = value
    }
}
