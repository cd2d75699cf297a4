import MartletCore
import MartletCrypto
import Testing

/// Hashes that are rejected before any computation.
@Suite struct HashFormTests {
    private static let salt = "c29tZXNhbHQxMjM0NTY3OA"
    private static let tag = "DEwLbbIZGUtgBuB4gYok6r6hNvevYZoxkwMQ5/LXSaU"
    private static let bcrypt = "abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2"
    private static let digest = String(repeating: "a", count: 43)
    private static let long = String(repeating: "a", count: 86)

    private static func reason(_ text: String) -> ErrorCode? {
        do {
            _ = try PasswordHash(text)
            return nil
        } catch {
            return error.code
        }
    }

    @Test(arguments: [
        "", "*", "!", "!!", "x", "secret", "plain:text", "{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", "{SSHA}abcd",
        "rl.3StKT.4T8M",
        "_J9..rasmBYk8r9AiWNc", "$", "$$", "$1$somesalt$3UIkSYKvC3tOZ8NkKyqJd1",
        "$apr1$somesalt$aaaaaaaaaaaaaaaaaaaaaa",
        "$2x$05$\(bcrypt)", "$2$05$\(bcrypt)", "$2c$05$\(bcrypt)", "$3$$8846f7eaee8fb117ad06bdd830b7586c",
        "$md5$aaaaaaaa$",
        "$sha1$4$a$aaaa", "$argon2i$v=19$m=19456,t=2,p=1$\(salt)$\(tag)",
        "$argon2d$v=19$m=19456,t=2,p=1$\(salt)$\(tag)",
        "$argon2id", "$Argon2id$v=19$m=19456,t=2,p=1$\(salt)$\(tag)", " $argon2id$v=19$m=19456,t=2,p=1$\(salt)$\(tag)",
        "$argon2id$v=16$m=19456,t=2,p=1$\(salt)$\(tag)", "$argon2id$v=019$m=19456,t=2,p=1$\(salt)$\(tag)",
        "$scrypt$ln=17,r=8,p=1$\(salt)$\(tag)", "$pbkdf2-sha256$600000$\(salt)$\(tag)", "$y$k9T$abcd$\(digest)",
        "$y$j9T/$abcd$\(digest)", "$y$j9$abcd$\(digest)", "$y$$abcd$\(digest)", "$y$jzT$abcd$\(digest)",
    ])
    func `rejects unsupported formats`(text: String) {
        #expect(Self.reason(text) == "crypto.unsupported_hash")
    }

    @Test(arguments: [
        "$argon2id$", "$argon2id$v=19$m=19456,t=2,p=1$\(salt)", "$argon2id$m=19456,t=2,p=1$\(salt)$\(tag)",
        "$argon2id$v=19$m=19456,t=2,p=1$\(salt)$\(tag)$", "$argon2id$v=19$m=19456,t=2$\(salt)$\(tag)",
        "$argon2id$v=19$t=2,m=19456,p=1$\(salt)$\(tag)", "$argon2id$v=19$m=19456,t=2,p=1,data=AA$\(salt)$\(tag)",
        "$argon2id$v=19$m=19456,t=2,p=1,keyid=AA$\(salt)$\(tag)", "$argon2id$v=19$m=019456,t=2,p=1$\(salt)$\(tag)",
        "$argon2id$v=19$m=+19456,t=2,p=1$\(salt)$\(tag)", "$argon2id$v=19$m=-1,t=2,p=1$\(salt)$\(tag)",
        "$argon2id$v=19$m=,t=2,p=1$\(salt)$\(tag)", "$argon2id$v=19$m=19456,t=0,p=1$\(salt)$\(tag)",
        "$argon2id$v=19$m=19456,t=2,p=0$\(salt)$\(tag)", "$argon2id$v=19$m=7,t=2,p=1$\(salt)$\(tag)",
        "$argon2id$v=19$m=127,t=2,p=16$\(salt)$\(tag)", "$argon2id$v=19$m=0x4c00,t=2,p=1$\(salt)$\(tag)",
        "$argon2id$v=19$m=99999999999,t=2,p=1$\(salt)$\(tag)", "$argon2id$v=19$m=19456,t=2,p=1$\(salt)==$\(tag)",
        "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQxMjM0NTY3OB$\(tag)",
        "$argon2id$v=19$m=19456,t=2,p=1$\(salt)$\(tag)=",
        "$argon2id$v=19$m=19456,t=2,p=1$\(salt)$DEwLbbIZGUtgBuB4gYok6r6hNvevYZoxkwMQ5/LXSaV",
        "$argon2id$v=19$m=19456,t=2,p=1$\(salt)$DEwLbbIZGUtgBuB4gYok6r6hNvevYZoxkwMQ5_LXSaU",
        "$argon2id$v=19$m=19456,t=2,p=1$$\(tag)", "$argon2id$v=19$m=19456,t=2,p=1$\(salt)$",
        "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbA$\(tag)",
        "$argon2id$v=19$m=19456,t=2,p=1$\(salt)$DEwLbbIZGUtgBuB4gYok",
        "$argon2id$v=19$m=19456,t=2,p=1$\(salt)$\(tag)\n", "$argon2id$v=19$m=19456,t=2,p=1$\(salt)$\(tag) ",
        "$2y$", "$2y$05$", "$2y$5$\(bcrypt)x", "$2y$03$\(bcrypt)", "$2y$00$\(bcrypt)", "$2y$05$\(bcrypt)x",
        "$2y$0a$\(bcrypt)",
        "$2y$05$abcdefghijklmnopqrstuvHNbAKRhpaujgo33bRWs.NLUTJO3lOy2",
        "$2y$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy3",
        "$2y$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs:NLUTJO3lOy2", "$5$", "$5$salt", "$5$$\(digest)",
        "$5$saltsaltsaltsalts$\(digest)", "$5$salt$\(digest)a", "$5$rounds=999$salt$\(digest)",
        "$5$rounds=05000$salt$\(digest)", "$5$rounds=$salt$\(digest)", "$5$rounds=5000$\(digest)$", "$6$salt$\(digest)",
        "$6$sa:lt$\(long)", "$6$sa lt$\(long)", "$6$rounds=5000$salt$x$\(long)", "$7$", "$7$CU..../....salt",
        "$7$CU..../...$\(digest)", "$7$.U..../....salt$\(digest)", "$7$C...../....salt$\(digest)",
        "$7$CU.........salt$\(digest)", "$7$CU..../....sa!lt$\(digest)", "$y$j9T$salt", "$y$j9T$sa!t$\(digest)",
        "$y$j9T$salt$\(digest)a", "$y$j9T$salt$\(digest)$",
    ])
    func `rejects a malformed hash`(text: String) {
        let reason = Self.reason(text)
        // SHA-crypt parses an invalid rounds field as a salt that is too long, and so on: malformed either way.
        #expect(
            reason == "crypto.bad_hash" || reason == "crypto.unsupported_hash", "\(text): \(String(describing: reason))"
        )
    }

    @Test(arguments: [
        "$argon2id$v=19$m=262145,t=2,p=1$\(salt)$\(tag)", "$argon2id$v=19$m=19456,t=17,p=1$\(salt)$\(tag)",
        "$argon2id$v=19$m=19456,t=2,p=17$\(salt)$\(tag)", "$argon2id$v=19$m=999999999,t=999999999,p=1$\(salt)$\(tag)",
        "$2y$16$\(bcrypt)", "$2y$31$\(bcrypt)", "$2y$99$\(bcrypt)", "$5$rounds=1000001$salt$\(digest)",
        "$6$rounds=999999999$salt$\(long)", "$y$jET$salt$\(digest)", "$y$jJT$salt$\(digest)", "$gy$jET$salt$\(digest)",
        "$7$GU..../....salt$\(digest)", "$7$zU..../....salt$\(digest)", "$7$CUzzzz/....salt$\(digest)",
        "$7$CU....F....salt$\(digest)", "$7$CU....zzzzzsalt$\(digest)",
    ])
    func `rejects a hash that requires too much work`(text: String) {
        #expect(Self.reason(text) == "crypto.costly_hash")
    }

    @Test(arguments: [
        "$argon2id$v=19$m=262144,t=16,p=16$\(salt)$\(tag)", "$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$\(tag)",
        "$2y$15$\(bcrypt)",
        "$2y$04$\(bcrypt)", "$5$rounds=1000000$salt$\(digest)", "$6$rounds=1000$s$\(long)", "$y$jDT$salt$\(digest)",
        "$y$j9T$$\(digest)", "$7$EU..../....salt$\(digest)", "$7$8/..../....$\(digest)",
    ])
    func `accepts the limits themselves`(text: String) throws {
        #expect(try PasswordHash(text).encoded == text)
    }

    @Test func `rejects every truncation`() throws {
        for whole in ["$argon2id$v=19$m=64,t=1,p=1$\(Self.salt)$\(Self.tag)", "$2y$05$\(Self.bcrypt)"] {
            for count in 0..<whole.utf8.count {
                let text = String(whole.prefix(count))
                // A shorter tag is valid.
                guard let hash = try? PasswordHash(text) else { continue }
                #expect(hash.encoded == text && hash.needsRehash(.standard))
            }
        }
    }
}
