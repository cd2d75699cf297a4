import MartletCore
import MartletCrypto
import MartletJSON
import MartletProvider
import MartletRedis
import MartletSession
import MartletSessionTesting
import MartletTesting
import Testing

/// What a session of a user of Sign in with Apple takes in a real Redis.
@Suite(.timeLimit(.minutes(10))) struct `The cost of a session` {
    private static func identity(_ number: Int) -> Identity {
        let subject = "001234.\(random(16)).\(1000 + number % 9000)"
        return Identity(
            providerSubject: subject, issuer: "https://appleid.apple.com",
            claims: [
                "email": .string("\(random(5))@privaterelay.appleid.com"), "email_verified": true,
                "is_private_email": true, "real_user_status": 2, "name": "Anna Example", "transferred": false,
            ],
            authTime: UnixTime(seconds: 1_799_999_990), issuedAt: UnixTime(seconds: 1_799_999_995),
            expiresAt: UnixTime(seconds: 1_800_003_600))
    }

    private static func subject(_ number: Int) -> String {
        "usr_" + Base64URL.encode(Array(SHA256.digest(Array("\(number)".utf8)).prefix(16)))
    }

    private static func random(_ count: Int) -> String {
        Hexadecimal.text((0..<count).map { _ in .random(in: 0...255) })
    }

    /// The bytes of the server's data.
    private static func used(_ server: RedisServer) throws -> Int {
        let line = try server.command("INFO memory").split(separator: "\r\n").first { $0.hasPrefix("used_memory:") }
        return Int(try #require(line).dropFirst("used_memory:".count)) ?? 0
    }

    @Test(arguments: [false, true])
    func `is at most 896 bytes, or 944 with an account, all of its keys and overhead included`(
        isSealed: Bool
    ) async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server, options: patient) { clients in
            let clock = Box(hourAhead())
            let seal =
                isSealed
                ? StoreSeal(
                    keys: [Secret([UInt8](repeating: 1, count: 32))], clock: .reading(clock), logger: .silent) : nil
            let bench = SessionBench(
                backend: RedisSessions(client: clients[0], keyPrefix: "martlet:", seal: seal), clock: clock, seal: seal)
            let client = SessionClient(
                deviceName: "Anna’s iPhone", userAgent: "App/2.1 CFNetwork/1494.0.7 Darwin/23.4.0",
                address: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 192, 0, 2, 1])
            func login(_ number: Int) async throws {
                _ = try await bench.store.create(
                    subject: Self.subject(number), provider: "apple",
                    identity: Self.identity(number), client: client)
            }
            func account(_ number: Int) async throws {
                let claims = VersionedClaims(
                    version: 1_800_000_000_000, claims: AccountClaims(account: [:], identities: [:]))
                _ = try await bench.store.apply(claims, to: Self.subject(number))
            }
            // Tables of the server have grown to a power of two afterwards.
            for number in 0..<20 { try await login(number) }
            let before = try Self.used(server)
            let count = 4096 - 20
            for number in 20..<4096 { try await login(number) }
            let each = (try Self.used(server) - before) / count
            #expect(each <= 896, "\(each) bytes")
            for number in 20..<4096 { try await account(number) }
            let withAccount = (try Self.used(server) - before) / count
            #expect(withAccount <= 944, "\(withAccount) bytes")
        }
    }
}
