import MartletCore
import MartletCrypto
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@testable import WeChatProvider

@Suite struct `Mini-program data` {
    private static let keyText = "AAECAwQFBgcICQoLDA0ODw=="
    private static let key = Secret((0..<16).map { UInt8($0) })
    private static let iv = (16..<32).map { UInt8($0) }
    private static let ivText = "EBESExQVFhcYGRobHB0eHw=="
    // {"openId":"o1","watermark":{"timestamp":1700000000,"appid":"wx0000000000000001"}}
    private static let knownData =
        "3vdBpUx0rg4Vn3QZFM3i1IKXfWVTptCMS4WVH3IN9mqdTT4pJciYwXd1H9/LUV2F+V7C+oVreVZR9OBIZQYYRxf8FcQaIc6vY0HqJr4kOq9H8Uod/OipVx7gEkfXqmD3"

    private static func bench(unionID: String? = nil, key: String = keyText, decrypt: Bool = true) throws -> Bench {
        let bench = try Bench(
            "decrypt: \(decrypt)",
            apps: "apps: { mini: { variant: mini_program, app_id: wx0000000000000001, app_secret: s } }")
        let union = unionID.map { #","unionid":"\#($0)""# } ?? ""
        bench.weChat.respond(
            `WeChat exchange`.session, .json(#"{"openid":"o1","session_key":"\#(key)"\#(union)}"#))
        return bench
    }

    static func base64(_ bytes: [UInt8]) -> String {
        let text = Base64URL.encode(bytes).map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 }
        return String(text) + String(repeating: "=", count: (4 - text.count % 4) % 4)
    }

    private static func encrypted(_ text: String) throws -> [String: String] {
        let sealed = try #require(AES128CBC.encrypt(Array(text.utf8), key: key, iv: iv))
        return ["encrypted_data": base64(sealed), "iv": ivText]
    }

    private static func watermark(_ timestamp: Int64 = Bench.now, _ app: String = Bench.mobile) -> String {
        #""watermark":{"timestamp":\#(timestamp),"appid":"\#(app)"}"#
    }

    // MARK: Signatures

    private static let signed = [
        "raw_data": #"{"nickName":"t"}"#, "signature": "7b5a51b239e56dbb121b8f3a94e4d535ee4546f9",
    ]

    @Test func `signed data is accepted`() async throws {
        let signIn = try await Self.bench().signIn("mini", "c1", Self.signed)
        #expect(signIn.identity.claims["nickname"] == "t")
    }

    @Test(arguments: [
        ["raw_data": #"{"nickName":"u"}"#], ["raw_data": #"{"nickName": "t"}"#], ["raw_data": ""],
        ["signature": "7b5a51b239e56dbb121b8f3a94e4d535ee4546f8"],
        ["signature": "7B5A51B239E56DBB121B8F3A94E4D535EE4546F9"], ["signature": ""],
    ])
    func `data with another signature is rejected`(change: [String: String]) async throws {
        let bench = try Self.bench()
        let error = try #require(await bench.failure("mini", "c1", Self.signed.merging(change) { $1 }))
        #expect(error.code == "wechat.bad_data")
        #expect(error.disposition == .rejected)
    }

    // MARK: Encrypted data

    @Test func `known data is accepted`() async throws {
        let bench = try Self.bench()
        _ = try await bench.signIn("mini", "c1", ["encrypted_data": Self.knownData, "iv": Self.ivText])
    }

    @Test func `a user's data gives nickname, avatar and phone`() async throws {
        let bench = try Self.bench(unionID: "U_1")
        let text = """
            {"openId":"o1","unionId":"U_1","nickName":"A\\u202eda","avatarUrl":"https://thirdwx.qlogo.cn/x",\
            "purePhoneNumber":"13800000000","countryCode":"86",\(Self.watermark())}
            """
        let signIn = try await bench.signIn("mini", "c1", try Self.encrypted(text))
        #expect(
            signIn.identity.claims == [
                "openid": "o1", "app_id": .string(Bench.mobile), "unionid": "U_1", "nickname": "Ada",
                "picture": "https://thirdwx.qlogo.cn/x", "phone_number": "+8613800000000",
            ])
    }

    static let bad: [String] = [
        "{}", "x", "", #"{"openId":"o1"}"#, #"{"openId":"o2",\#(watermark())}"#, #"{"openId":7,\#(watermark())}"#,
        #"{"unionId":"U_2",\#(watermark())}"#, "{\(watermark(Bench.now - 301))}", "{\(watermark(Bench.now + 61))}",
        "{\(watermark(.max))}", "{\(watermark(.min))}", "{\(watermark(Bench.now, Bench.mini))}",
        #"{"watermark":{"timestamp":"1700000000","appid":"wx0000000000000001"}}"#,
        #"{"watermark":{"timestamp":1700000000}}"#, "{\(watermark()),\(watermark())}",
    ]

    @Test(arguments: bad)
    func `data that is not this user's, this app's and fresh is rejected with one code`(text: String) async throws {
        let error = try #require(
            await (try Self.bench(unionID: "U_1")).failure("mini", "c1", try Self.encrypted(text)))
        #expect(error.code == "wechat.bad_data")
        #expect(error.disposition == .rejected)
    }

    @Test(arguments: [Bench.now - 300, Bench.now + 60])
    func `data is fresh for five minutes, and a minute ahead`(timestamp: Int64) async throws {
        let form = try Self.encrypted("{\(Self.watermark(timestamp))}")
        #expect(await (try Self.bench()).failure("mini", "c1", form) == nil)
    }

    @Test(arguments: [
        ["encrypted_data": ""], ["encrypted_data": "AAAA"], ["encrypted_data": "!!!!"],
        ["encrypted_data": String(knownData.dropLast(24)) + "AAAAAAAAAAAAAAAAAAAAAA=="],
        ["encrypted_data": knownData.replacing("/", with: " ")], ["iv": ""], ["iv": "AAAA"],
        ["iv": "EBESExQVFhcYGRobHB0eHw"], ["iv": "EBESExQVFhcYGRobHB0eHx=="],
    ])
    func `text that is not WeChat's is malformed, and sends nothing`(change: [String: String]) async throws {
        let form = ["encrypted_data": Self.knownData, "iv": Self.ivText].merging(change) { $1 }
        let bench = try Self.bench()
        let error = try #require(await bench.failure("mini", "c1", form))
        #expect(error.code == "signin.bad_member" && error.disposition == .malformed)
        #expect(error.bodyErrors.map(\.pointer) == change.keys.map { "/\($0)" })
        #expect(bench.weChat.calls.isEmpty)
        // The code is still good.
        #expect(await bench.failure("mini", "c1", ["encrypted_data": Self.knownData, "iv": Self.ivText]) == nil)
    }

    @Test(arguments: [
        ["encrypted_data": String(knownData.prefix(64))], ["iv": "AAAAAAAAAAAAAAAAAAAAAA=="],
    ])
    func `a changed byte is rejected with the same code`(change: [String: String]) async throws {
        let form = ["encrypted_data": Self.knownData, "iv": Self.ivText].merging(change) { $1 }
        #expect(await (try Self.bench()).failure("mini", "c1", form)?.code == "wechat.bad_data")
    }

    @Test func `every changed byte of known data is noticed or changes nothing`() async throws {
        let sealed = try #require(decodeBase64(Array(Self.knownData.utf8)))
        for index in sealed.indices {
            var changed = sealed
            changed[index] ^= 0x01
            let form = ["encrypted_data": Self.base64(changed), "iv": Self.ivText]
            #expect(await (try Self.bench()).failure("mini", "c1", form)?.code == "wechat.bad_data", "byte \(index)")
        }
    }

    @Test func `data is accepted once`() async throws {
        let bench = try Self.bench()
        let form = try Self.encrypted("{\(Self.watermark())}")
        _ = try await bench.signIn("mini", "c1", form)
        #expect(await bench.failure("mini", "c2", form)?.code == "wechat.bad_data")
    }

    @Test(arguments: ["AAECAwQFBgcICQoLDA0O", "not base64 at all!!!", "AAECAwQFBgcICQoLDA0ODxA="])
    func `an invalid session key decrypts nothing`(key: String) async throws {
        #expect(await (try Self.bench(key: key)).failure("mini", "c1", Self.signed)?.code == "wechat.bad_data")
        #expect(await (try Self.bench(key: key)).failure("mini", "c2") == nil)
    }

    @Test func `encrypted data is ignored unless it is configured`() async throws {
        let bench = try Self.bench(decrypt: false)
        #expect(await bench.failure("mini", "c1", ["encrypted_data": "nonsense", "iv": "x"]) == nil)
    }

    @Test func `data of an app or a page is ignored`() async throws {
        let bench = try Bench("profile: false")
        bench.weChat.respond(`WeChat exchange`.token, .json(`WeChat exchange`.tokenResponse()))
        #expect(await bench.failure("ios", "c1", ["raw_data": "{}", "signature": "no"]) == nil)
    }

    @Test func `the session key does not leave the provider`() async throws {
        let bench = try Self.bench()
        let signIn = try await bench.signIn("mini", "c1", Self.signed)
        #expect(!"\(signIn)".contains("AAECAwQF"))
        #expect(!bench.log.text.contains("AAECAwQF"))
        bench.weChat.respond(
            `WeChat exchange`.session, .json(#"{"openid":"o1","session_key":"\#(Self.keyText)","unionid":7}"#))
        let error = try #require(await bench.failure("mini", "c2", Self.signed))
        #expect(!"\(error) \(error.cause.map { "\($0)" } ?? "")".contains("AAECAwQF"))
    }

    @Test(
        arguments: [
            ("", []), ("AA==", [0]), ("AAE=", [0, 1]), ("AAEC", [0, 1, 2]), ("+/+/", [0xFB, 0xFF, 0xBF]), ("AA", nil),
            ("AB==", nil), ("A===", nil), ("====", nil), ("-_-_", nil), ("AA= ", nil), ("AA==AAAA", nil),
        ] as [(String, [UInt8]?)])
    func `base64 is read strictly`(text: String, bytes: [UInt8]?) {
        #expect(decodeBase64(Array(text.utf8)) == bytes)
    }
}
