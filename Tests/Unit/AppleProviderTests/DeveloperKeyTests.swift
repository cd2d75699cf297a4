import AppleProvider
import MartletCore
import MartletTesting
import Testing

@Suite struct DeveloperKeyTests {
    private func rejection(_ lines: [(String, Bench.Value)]) -> Bench.ConfigurationRejected? {
        do {
            _ = try Bench(lines)
            return nil
        } catch let error as Bench.ConfigurationRejected {
            return error
        } catch {
            return Bench.ConfigurationRejected(codes: [], text: "\(error)")
        }
    }

    private func rejection(ofKey pem: String) -> Bench.ConfigurationRejected? {
        rejection([
            ("team_id", .text("ABCDE12345")), ("key_id", .text("KEY1234567")), ("private_key", .text(pem)),
        ])
    }

    @Test func `a file that is another thing is named`() throws {
        func boundary(_ label: String) -> String { "-----BEGIN \(label)-----\nAAAA\n-----END \(label)-----\n" }
        let cases: [(String, String)] = [
            (boundary("EC PRIVATE KEY"), "is an EC key in the SEC 1 form"),
            (boundary("RSA PRIVATE KEY"), "is an RSA key"),
            (boundary("ENCRYPTED PRIVATE KEY"), "is an encrypted key"),
            (boundary("OPENSSH PRIVATE KEY"), "is a key of OpenSSH"),
            (boundary("PUBLIC KEY"), "is a public key"),
            (boundary("CERTIFICATE"), "is a certificate"),
            (boundary("CERTIFICATE REQUEST"), "is a certificate request"),
            (boundary("X9.42 DH PARAMETERS"), "is a PEM file without a private key"),
            (boundary("PRIVATE KEY"), "is a damaged PKCS #8 key"),
            (Self.p384, "is a P-384 key"), (Self.ed25519, "is an Ed25519 key"),
            (
                """
                -----BEGIN PRIVATE KEY-----
                MIGEAgEAMBAGByqGSM49AgEGBSuBBAAKBG0wawIBAQQgzgq7+Z71n+lanakGUL5f
                yotxxO+MpUGNhotErxEIRzWhRANCAATqQEiEW99swCzTDe4GW8EjSYV20l0epjgp
                vdZ8SfRx1S4o26keJk8iZdULqa0hXh59BUTfrq17YswaWr3gCcuC
                -----END PRIVATE KEY-----
                """, "is a secp256k1 key"
            ),
            (
                try Bench.developerKey.get().privatePEM().split(separator: "\n").enumerated()
                    .filter { $0.offset != 2 }.map(\.element).joined(separator: "\n"), "is a P-256 key that is damaged"
            ),
            (try SigningKey("r").privatePEM(), "is an RSA key"),
            ("0\u{02}binary", "is a binary (DER) file"),
            (#"{"kty":"EC"}"#, "is a JSON document"),
            ("hello", "is not a PEM file"),
        ]
        for (pem, text) in cases {
            let error = rejection(ofKey: pem)
            #expect(error?.codes == ["config.bad_value"], "\(text)")
            #expect(error?.text.contains(text) == true, "\(text): \(error?.text ?? "accepted")")
            #expect(error?.text.contains("config.yaml:1:1") == true)
        }
    }

    private static let p384 = """
        -----BEGIN PRIVATE KEY-----
        MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDDKminY0eDl7EqyCC48
        enzsAB1fjDqum+u+KLsHNjsQKRL4zd4QW84lz//2J5qp0EShZANiAASxLKki5qaw
        K1MNG7v3voZXHHTynjCbtWQw38athyS0cMSxXpLnIbuvm5J+GjTKus5WZtlBWi6H
        xyy4oHMW0LqsQOjJYXvkr3gElXlI1pMnTwkk5v/dRF7gRwr1IKdbu2g=
        -----END PRIVATE KEY-----
        """

    private static let ed25519 = """
        -----BEGIN PRIVATE KEY-----
        MC4CAQAwBQYDK2VwBCIEIHqvahumDlQyj7QV+H6TTGf24JZhIkTqWk1Xl38TUkxg
        -----END PRIVATE KEY-----
        """

    @Test(arguments: ["\\n", "\\r\\n", "\r\n"])
    func `line breaks may be written as in a file of variables`(lineBreak: String) throws {
        let pem = try Bench.developerKey.get().privatePEM()
        #expect(rejection(ofKey: pem.replacing("\n", with: lineBreak)) == nil)
    }

    @Test func `of several keys the last one is used`() async throws {
        let pem = try Bench.developerKey.get().privatePEM()
        let other = try SigningKey("OTHER", .p256).privatePEM()
        let keys: Bench.Value = .blocks([
            [("key_id", .text("OLDKEY1234")), ("private_key", .text(other))],
            [("key_id", .text("KEY1234567")), ("private_key", .text(pem))],
        ])
        let apple = ScriptedApple(200, try ScriptedApple.tokens())
        let bench = try Bench([("team_id", .text("ABCDE12345")), ("keys", keys)], http: apple)
        _ = try await bench.login(code: ExchangeTests.code).get()
        let header = try #require(apple.received.first?.fields["client_secret"]?.split(separator: ".").first)
        #expect(try #require(Base64URL.decode(String(header))).contains(Array("KEY1234567".utf8)))
    }

    @Test func `incomplete settings are errors`() throws {
        let pem = Bench.Value.text(try Bench.developerKey.get().privatePEM())
        let (team, id) = (Bench.Value.text("ABCDE12345"), Bench.Value.text("KEY1234567"))
        let cases: [([(String, Bench.Value)], ErrorCode)] = [
            ([("team_id", team)], "config.missing_key"),
            ([("key_id", id), ("private_key", pem)], "config.missing_key"),
            ([("team_id", team), ("key_id", id)], "config.missing_key"),
            ([("team_id", team), ("private_key", pem)], "config.missing_key"),
            ([("team_id", .text("abcde12345")), ("key_id", id), ("private_key", pem)], "config.bad_value"),
            ([("team_id", team), ("key_id", .text("KEY")), ("private_key", pem)], "config.bad_value"),
            ([("check", .block([]))], "config.missing_key"),
            (
                [
                    ("team_id", team), ("key_id", id), ("private_key", pem),
                    ("keys", .blocks([[("key_id", id), ("private_key", pem)]])),
                ], "config.conflicting_keys"
            ),
            (
                [
                    ("team_id", team), ("key_id", id), ("private_key", pem),
                    ("check", .block([("rate", .text("0/s"))])),
                ], "config.bad_value"
            ),
        ]
        for (lines, code) in cases {
            let error = rejection(lines)
            #expect(error?.codes.contains(code) == true, "\(lines.map(\.0)): \(error?.text ?? "accepted")")
        }
        #expect(rejection([("team_id", team), ("key_id", id), ("private_key", pem)]) == nil)
        // An id of another form is there all the same.
        for lines in [
            [("team_id", team), ("key_id", .text("key1234567")), ("private_key", pem)],
            [("team_id", .text("abcde12345")), ("key_id", id), ("private_key", pem)],
        ] as [[(String, Bench.Value)]] {
            #expect(rejection(lines)?.codes == ["config.bad_value"])
        }
    }
}
