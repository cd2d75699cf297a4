import MartletCore
import MartletJSON
import MartletTesting

// Identifiers are invented; what members there are, and their forms, is from each issuer's public documents.
extension WorldIssuer {
    private static let tenant = "9188040d-6c67-4c5b-b112-36a304b66dad"
    private static let thumbprint: JSONValue = "HlC0R12skxNZ1WQwmjOF_6t_tDE"
    private static let chain: JSONValue = ["MIIDBTCCAe2gAwIBAgIQ"]
    /// A key for encryption, as Keycloak has one beside each key for signatures.
    private static let encrypting: JSONObject = [
        "kid": "oaep", "kty": "RSA", "alg": "RSA-OAEP", "use": "enc", "n": "0vx7ago", "e": "AQAB",
    ]

    static let all = [
        entra, entraVersion1, adfs, cognito, keycloak, auth0, okta, firebase, google, xsuaa, wso2, identityServer, line,
    ]

    private static let entraVersion2 = "https://login.microsoftonline.com/\(tenant)/v2.0"

    static let entra = WorldIssuer(
        name: "Entra ID, version 2",
        configuration: """
            preset: microsoft
            tenant: \(tenant)
            audiences: [6e74172b-be56-4843-9ff4-e66a39bb12e3]
            subject_claim: oid
            """,
        discoveryURL: "\(entraVersion2)/.well-known/openid-configuration",
        discovery: [
            "issuer": .string(entraVersion2), "token_endpoint_auth_methods_supported": ["client_secret_post"],
            "cloud_instance_name": "microsoftonline.com", "kerberos_endpoint": "https://login.microsoftonline.com/k",
        ],
        keysURL: "https://login.microsoftonline.com/\(tenant)/discovery/v2.0/keys",
        kid: "-KI3Q9nNR7bRofxmeZoXqbHZGew",
        entry: ["use": "sig", "x5t": thumbprint, "x5c": chain, "cloud_instance_name": "microsoftonline.com"],
        claims: [
            "aud": "6e74172b-be56-4843-9ff4-e66a39bb12e3", "iss": .string(entraVersion2),
            "nbf": .integer(Bench.now - 60),
            "aio": "AXQAi", "azp": "6e74172b-be56-4843-9ff4-e66a39bb12e3", "azpacr": "0", "name": "Abe Lincoln",
            "oid": "690222be-ff1a-4d56-abd1-7e4f7d38e474", "preferred_username": "abeli@microsoft.com", "rh": "I",
            "roles": ["Orders.Read"], "scp": "access_as_user", "sub": "HKZpfaHyWadeOouYlitjrI-KffTm222X5rrV3xDqfKQ",
            "tid": .string(tenant), "uti": "fqiBqXLPj0eQa82S-IYFAA", "ver": "2.0",
        ],
        issuer: entraVersion2, subject: "690222be-ff1a-4d56-abd1-7e4f7d38e474",
        seen: ["scope": ["access_as_user"], "roles": ["Orders.Read"]],
        faults: [
            .claim(
                "iss", "https://login.microsoftonline.com/11111111-2222-3333-4444-555555555555/v2.0", "oidc.bad_issuer"),
            .claim("oid", nil, "oidc.bad_subject"),
        ])

    static let entraVersion1 = WorldIssuer(
        name: "Entra ID, version 1",
        configuration: """
            issuer: https://sts.windows.net/\(tenant)/
            audiences: ["api://orders"]
            rename: { scp: scope }
            """,
        discoveryURL: "https://sts.windows.net/\(tenant)/.well-known/openid-configuration",
        discovery: [
            "issuer": .string("https://sts.windows.net/\(tenant)/"),
            "check_session_iframe": "https://login.microsoftonline.com/c",
        ],
        keysURL: "https://login.microsoftonline.com/common/discovery/keys", kid: "HlC0R12skxNZ1WQwmjOF_6t_tDE",
        entry: ["use": "sig", "x5t": thumbprint, "x5c": chain],
        header: ["typ": "JWT", "x5t": thumbprint],
        claims: [
            "aud": "api://orders", "iss": .string("https://sts.windows.net/\(tenant)/"),
            "nbf": .integer(Bench.now - 60),
            "acr": "1", "aio": "AXQAi", "amr": ["pwd"], "appid": "be9d0a7d-ca52-4d1c-82cc-1d5d23bc7a4a",
            "appidacr": "0",
            "ipaddr": "203.0.113.7", "oid": "690222be-ff1a-4d56-abd1-7e4f7d38e474", "scp": "read write",
            "sub": "l3_roISQU222bULS9yi2k0XpqpOiMz5H3ZACo1GeXA", "tid": .string(tenant),
            "unique_name": "abeli@microsoft.com",
            "upn": "abeli@microsoft.com", "uti": "fqiBqXLPj0eQa82S-IYFAA", "ver": "1.0",
        ],
        issuer: "https://sts.windows.net/\(tenant)/", subject: "l3_roISQU222bULS9yi2k0XpqpOiMz5H3ZACo1GeXA",
        seen: ["scope": ["read", "write"]],
        faults: [
            .claim("aud", "00000003-0000-0000-c000-000000000000", "oidc.bad_audience"),
            .header("jwk", ["kty": "RSA"], "oidc.header_not_allowed"),
        ])

    static let adfs = WorldIssuer(
        name: "ADFS",
        configuration: """
            issuer: https://adfs.example.com/adfs
            issuers: [http://adfs.example.com/adfs/services/trust]
            audiences: ["microsoft:identityserver:orders"]
            subject_claim: primarysid
            rename: { scp: scope, upn: email }
            """,
        discoveryURL: "https://adfs.example.com/adfs/.well-known/openid-configuration",
        discovery: [
            "issuer": "https://adfs.example.com/adfs",
            "access_token_issuer": "http://adfs.example.com/adfs/services/trust",
            "device_authorization_endpoint": .null,
        ],
        keysURL: "https://adfs.example.com/adfs/discovery/keys", kid: "HlC0R12skxNZ1WQwmjOF_6t_tDE",
        entry: ["use": "sig", "alg": "RS256", "x5t": thumbprint, "x5c": chain],
        header: ["typ": "JWT", "x5t": thumbprint],
        claims: [
            "aud": "microsoft:identityserver:orders", "iss": "http://adfs.example.com/adfs/services/trust",
            "primarysid": "S-1-5-21-1004336348-1177238915-682003330-512", "upn": "ada@example.com", "apptype": "Public",
            "appid": "2eee9f8d-0f8b-4a3e-8d3f-6f0a0a4a2c57", "ver": "1.0", "scp": "openid user_impersonation",
            "authmethod": "urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport",
            "auth_time": "2027-01-15T07:58:20.311Z",
        ],
        issuer: "http://adfs.example.com/adfs/services/trust", subject: "S-1-5-21-1004336348-1177238915-682003330-512",
        seen: ["scope": ["openid", "user_impersonation"], "email": "ada@example.com"],
        faults: [
            .claim("auth_time", "yesterday", "oidc.bad_times"),
            .claim("iss", "https://adfs.example.com/adfs", "oidc.bad_issuer"),
        ])

    private static let pool = "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_AbCdEfGhI"

    static let cognito = WorldIssuer(
        name: "Amazon Cognito",
        configuration: """
            issuer: \(pool)
            audiences: [7a8b9c0d1e2f3g4h5i6j7k8l9m]
            audience_claim: client_id
            rename: { "cognito:groups": groups }
            """,
        discoveryURL: "\(pool)/.well-known/openid-configuration", discovery: ["issuer": .string(pool)],
        keysURL: "\(pool)/.well-known/jwks.json", kid: "1234example=", entry: ["use": "sig", "alg": "RS256"],
        others: [["kid": "5678example=", "kty": "RSA", "alg": "RS256", "use": "sig", "n": "0vx7ago", "e": "AQAB"]],
        header: [:],
        claims: [
            "sub": "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee", "cognito:groups": ["admin"], "iss": .string(pool),
            "version": 2,
            "client_id": "7a8b9c0d1e2f3g4h5i6j7k8l9m", "origin_jti": "o", "event_id": "e", "token_use": "access",
            "scope": "phone openid", "auth_time": .integer(Bench.now - 60), "jti": "j", "username": "ada",
        ],
        issuer: pool, subject: "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee",
        seen: ["groups": ["admin"], "scope": ["phone", "openid"]],
        faults: [
            .claim("client_id", "another", "oidc.bad_audience"), .claim("client_id", nil, "oidc.bad_audience"),
        ])

    static let keycloak = WorldIssuer(
        name: "Keycloak",
        configuration: """
            preset: keycloak
            base_url: https://sso.example.com/realms/acme
            audiences: [account]
            """,
        discoveryURL: "https://sso.example.com/realms/acme/.well-known/openid-configuration",
        discovery: [
            "issuer": "https://sso.example.com/realms/acme", "tls_client_certificate_bound_access_tokens": true,
            "mtls_endpoint_aliases": ["token_endpoint": "https://sso.example.com/realms/acme/token"],
        ],
        keysURL: "https://sso.example.com/realms/acme/protocol/openid-connect/certs",
        kid: "FJ86GcF3jTbNLOco4NvZkUCIUmfYCqoqtOQeMfbhNlE",
        entry: ["use": "sig", "alg": "RS256", "x5c": chain, "x5t": thumbprint, "x5t#S256": "AAAA"],
        others: [encrypting],
        claims: [
            "auth_time": .integer(Bench.now - 60), "jti": "onrtac:1a", "iss": "https://sso.example.com/realms/acme",
            "aud": ["realm-management", "account"], "sub": "6f1a4d2e-3c5b-4e7f-8a9b-0c1d2e3f4a5b", "typ": "Bearer",
            "azp": "website", "sid": "s", "acr": "1", "allowed-origins": ["https://app.example.com"],
            "realm_access": ["roles": ["offline_access", "manager"]],
            "resource_access": ["account": ["roles": ["manage-account"]]], "scope": "openid email profile",
            "email_verified": true, "name": "Ada Lovelace", "preferred_username": "ada", "email": "ada@example.com",
        ],
        issuer: "https://sso.example.com/realms/acme", subject: "6f1a4d2e-3c5b-4e7f-8a9b-0c1d2e3f4a5b",
        seen: ["roles": ["offline_access", "manager"], "email_verified": true],
        faults: [
            .claim("aud", "realm-management", "oidc.bad_audience"), .header("kid", "oaep", "oidc.key_unusable"),
        ])

    static let auth0 = WorldIssuer(
        name: "Auth0",
        configuration: """
            preset: auth0
            base_url: https://acme.eu.auth0.com
            audiences: [https://api.example.com]
            """,
        discoveryURL: "https://acme.eu.auth0.com/.well-known/openid-configuration",
        discovery: ["issuer": "https://acme.eu.auth0.com/", "mfa_challenge_endpoint": "https://acme.eu.auth0.com/mfa"],
        keysURL: "https://acme.eu.auth0.com/.well-known/jwks.json",
        kid: "NjVBRjY5MDlCMUIwNzU4RTA2QzZFMDQ4QzQ2MDAyQjVDNjk1RTM2Qg",
        entry: ["use": "sig", "alg": "RS256", "x5c": chain, "x5t": thumbprint],
        header: ["typ": "at+jwt"],
        claims: [
            "iss": "https://acme.eu.auth0.com/", "sub": "auth0|507f1f77bcf86cd799439020",
            "aud": ["https://api.example.com", "https://acme.eu.auth0.com/userinfo"], "azp": "my_client_id",
            "client_id": "my_client_id", "jti": "j", "scope": "openid read:orders", "permissions": ["read:orders"],
            "https://example.com/roles": ["admin"],
        ],
        issuer: "https://acme.eu.auth0.com/", subject: "auth0|507f1f77bcf86cd799439020",
        seen: ["permissions": ["read:orders"], "https://example.com/roles": ["admin"]],
        faults: [
            .claim("iss", "https://acme.eu.auth0.com", "oidc.bad_issuer"),
            .claim("aud", "https://acme.eu.auth0.com/userinfo", "oidc.bad_audience"),
        ])

    static let okta = WorldIssuer(
        name: "Okta",
        configuration: """
            issuer: https://acme.okta.com/oauth2/default
            audiences: ["api://default"]
            subject_claim: uid
            rename: { scp: scope }
            """,
        discoveryURL: "https://acme.okta.com/oauth2/default/.well-known/openid-configuration",
        discovery: ["issuer": "https://acme.okta.com/oauth2/default", "request_parameter_supported": true],
        keysURL: "https://acme.okta.com/oauth2/default/v1/keys", kid: "iKqiD4cr6TZmF6SmQ9a3QhQzjdUvHlX0lQ5sYnWcOcE",
        entry: ["use": "sig", "alg": "RS256"], header: [:],
        claims: [
            "ver": 1, "jti": "AT.0mP4JKAZX1iACIT4vbEDF7LpvDVjxypPMf0D7uX39RE",
            "iss": "https://acme.okta.com/oauth2/default",
            "aud": "api://default", "cid": "nmdP1fcyvdVO11AL7ECm", "uid": "00uid4BxXw6I6TV4m0g3",
            "scp": ["openid", "orders"], "auth_time": .integer(Bench.now - 90), "sub": "ada@example.com",
            "Groups": ["Everyone"],
        ],
        issuer: "https://acme.okta.com/oauth2/default", subject: "00uid4BxXw6I6TV4m0g3",
        seen: ["scope": ["openid", "orders"], "Groups": ["Everyone"]],
        faults: [
            .claim("exp", .integer(Bench.now - 1), "oidc.expired"), .claim("scp", [1], "oidc.bad_claim"),
        ])

    static let firebase = WorldIssuer(
        name: "Firebase",
        configuration: """
            issuer: https://securetoken.google.com/acme-12345
            audiences: [acme-12345]
            """,
        discoveryURL: "https://securetoken.google.com/acme-12345/.well-known/openid-configuration",
        discovery: [
            "issuer": "https://securetoken.google.com/acme-12345", "response_types_supported": ["id_token"],
            "id_token_signing_alg_values_supported": ["RS256"],
        ],
        keysURL: "https://www.googleapis.com/service_accounts/v1/jwk/securetoken@system.gserviceaccount.com",
        kid: "8e0b1f2a3c4d5e6f7a8b9c0d1e2f3a4b5c6d7e8f", entry: ["use": "sig", "alg": "RS256"], padsModulus: true,
        claims: [
            "iss": "https://securetoken.google.com/acme-12345", "aud": "acme-12345",
            "auth_time": .integer(Bench.now - 100),
            "user_id": "Xy12", "sub": "Xy12", "email": "ada@example.com", "email_verified": false,
            "firebase": ["identities": ["email": ["ada@example.com"]], "sign_in_provider": "password"],
        ],
        issuer: "https://securetoken.google.com/acme-12345", subject: "Xy12", seen: ["email_verified": false],
        faults: [.claim("aud", "another-project", "oidc.bad_audience"), .claim("sub", "", "oidc.bad_subject")])

    static let google = WorldIssuer(
        name: "Google",
        configuration: """
            preset: google
            audiences: [407408718192.apps.googleusercontent.com]
            """,
        discoveryURL: "https://accounts.google.com/.well-known/openid-configuration",
        discovery: [
            "issuer": "https://accounts.google.com", "revocation_endpoint": "https://oauth2.googleapis.com/revoke",
        ],
        keysURL: "https://www.googleapis.com/oauth2/v3/certs", kid: "e863fe292fa2a2967cd7551c42a1211bcac55071",
        entry: ["use": "sig", "alg": "RS256"],
        claims: [
            "iss": "accounts.google.com", "azp": "407408718192.apps.googleusercontent.com",
            "aud": "407408718192.apps.googleusercontent.com", "sub": "110169484474386276334", "hd": "example.com",
            "email": "ada@example.com", "email_verified": true, "at_hash": "HK6E_P6Dh8Y93mRNtsDB1Q",
            "name": "Ada Lovelace", "picture": "https://lh3.googleusercontent.com/a/photo.jpg", "given_name": "Ada",
        ],
        issuer: "accounts.google.com", subject: "110169484474386276334",
        seen: ["email_verified": true, "hd": "example.com"],
        faults: [
            .claim("iss", "https://accounts.google.com.evil.example", "oidc.bad_issuer"),
            .claim("iat", .integer(Bench.now - 86_401), "oidc.too_old"),
        ])

    static let xsuaa = WorldIssuer(
        name: "Cloud Foundry UAA, SAP XSUAA",
        configuration: """
            issuer: https://acme.authentication.eu10.hana.ondemand.com/oauth/token
            jwks_url: https://acme.authentication.eu10.hana.ondemand.com/token_keys
            audiences: ["sb-orders!t1234"]
            subject_claim: user_id
            rename: [{ claim: [xs.system.attributes, xs.rolecollections], as: roles }]
            """,
        keysURL: "https://acme.authentication.eu10.hana.ondemand.com/token_keys", kid: "default-jwt-key--1234567890",
        entry: ["use": "sig", "alg": "RS256", "value": "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----"],
        header: ["typ": "JWT", "jku": "https://acme.authentication.eu10.hana.ondemand.com/token_keys", "jid": "j"],
        claims: [
            "jti": "j", "ext_attr": ["enhancer": "XSUAA", "subaccountid": "s", "zdn": "acme"],
            "xs.system.attributes": ["xs.rolecollections": ["Orders Admin"]], "xs.user.attributes": [:],
            "given_name": "Ada", "sub": "c2a1", "scope": ["orders!t1234.Read", "openid"],
            "client_id": "sb-orders!t1234",
            "cid": "sb-orders!t1234", "azp": "sb-orders!t1234", "grant_type": "authorization_code", "user_id": "c2a1",
            "origin": "sap.default", "user_name": "ada@example.com", "email": "ada@example.com",
            "auth_time": .integer(Bench.now - 90), "rev_sig": "abc1",
            "iss": "https://acme.authentication.eu10.hana.ondemand.com/oauth/token", "zid": "z",
            "aud": ["sb-orders!t1234", "openid"],
        ],
        issuer: "https://acme.authentication.eu10.hana.ondemand.com/oauth/token", subject: "c2a1",
        seen: ["roles": ["Orders Admin"], "scope": ["orders!t1234.Read", "openid"]],
        faults: [
            .header("crit", ["jku"], "oidc.header_not_allowed"), .header("kid", "another", "oidc.unknown_key"),
        ])

    static let wso2 = WorldIssuer(
        name: "WSO2",
        configuration: """
            issuer: https://is.example.com:9443/oauth2/token
            audiences: [orders_client]
            """,
        discoveryURL: "https://is.example.com:9443/oauth2/token/.well-known/openid-configuration",
        discovery: [
            "issuer": "https://is.example.com:9443/oauth2/token",
            "registration_endpoint": "https://is.example.com:9443/r",
        ],
        keysURL: "https://is.example.com:9443/oauth2/jwks",
        kid: "MDJlNjIxN2E1OGZlOGVmMGQxOTFlMzBmNmFjZjQ0Y2YwOGY0N2I0YzE4YzZjNjRhYmRmMmQ0ODdiNDhjMGEwMA_RS256",
        entry: ["use": "sig", "alg": "RS256", "x5c": chain, "x5t#S256": "MDJlNjIx"],
        header: ["typ": "at+jwt", "x5t": thumbprint],
        claims: [
            "sub": "0a2f3b44-1d2e-4f5a-9b8c-7d6e5f4a3b2c", "aut": "APPLICATION_USER", "binding_type": "sso-session",
            "iss": "https://is.example.com:9443/oauth2/token", "client_id": "orders_client", "aud": "orders_client",
            "nbf": .integer(Bench.now - 60), "azp": "orders_client", "org_id": "10084a8d-113f-4211-a0d5-efe36b082211",
            "scope": "openid internal_login", "jti": "j", "binding_ref": "b",
        ],
        issuer: "https://is.example.com:9443/oauth2/token", subject: "0a2f3b44-1d2e-4f5a-9b8c-7d6e5f4a3b2c",
        seen: ["aut": "APPLICATION_USER"],
        faults: [
            .claim("nbf", .integer(Bench.now + 3600), "oidc.not_yet_valid"),
            .header("typ", "jwe", "oidc.header_not_allowed"),
        ])

    static let identityServer = WorldIssuer(
        name: "IdentityServer",
        configuration: """
            issuer: https://identity.example.com
            audiences: [orders]
            access_tokens: true
            """,
        discoveryURL: "https://identity.example.com/.well-known/openid-configuration",
        discovery: ["issuer": "https://identity.example.com", "backchannel_logout_supported": true],
        keysURL: "https://identity.example.com/.well-known/openid-configuration/jwks", kid: "4B0D64AE0E5D6E7C",
        entry: ["use": "sig", "x5t": thumbprint, "x5c": chain],
        header: ["typ": "at+jwt", "x5t": thumbprint],
        claims: [
            "nbf": .integer(Bench.now - 60), "iss": "https://identity.example.com", "client_id": "spa",
            "aud": ["orders"],
            "sub": "818727", "auth_time": .integer(Bench.now - 61), "idp": "local", "amr": ["pwd"], "sid": "s",
            "jti": "j",
            "scope": ["openid", "orders.read"],
        ],
        issuer: "https://identity.example.com", subject: "818727", seen: ["scope": ["openid", "orders.read"]],
        faults: [
            .header("typ", "JWT", "oidc.header_not_allowed"), .claim("client_id", nil, "oidc.wrong_token_kind"),
        ])

    static let line = WorldIssuer(
        name: "LINE",
        configuration: """
            preset: line
            audiences: ["1234567890"]
            """,
        discoveryURL: "https://access.line.me/.well-known/openid-configuration",
        discovery: ["issuer": "https://access.line.me", "id_token_signing_alg_values_supported": ["ES256"]],
        keysURL: "https://api.line.me/oauth2/v2.1/certs", kind: .p256,
        kid: "e07cf2bfc5d0e2b4a9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d9e8f7a6", entry: ["use": "sig", "alg": "ES256"],
        claims: [
            "iss": "https://access.line.me", "sub": "U1234567890abcdef1234567890abcdef", "aud": "1234567890",
            "nonce": "0987654asdf", "amr": ["linesso"], "name": "Taro Line",
            "picture": "https://profile.line-scdn.net/ch/a",
        ],
        issuer: "https://access.line.me", subject: "U1234567890abcdef1234567890abcdef", seen: ["name": "Taro Line"],
        faults: [
            .header("alg", "HS256", "oidc.alg_not_allowed"), .claim("aud", 1_234_567_890, "oidc.bad_audience"),
        ])
}
