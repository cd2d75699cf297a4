/// The configuration that `martlet init` writes: runs as it is, and shows where to go on.
enum StarterConfiguration {
    static let text = """
        # yaml-language-server: $schema=martlet.schema.json
        #
        # This configuration runs as it is, with no other service on the machine:
        #
        #   martlet user add ada                          adds a password user; asks for the password
        #   martlet run                                   serves
        #   curl -i http://127.0.0.1:8080/public/hello    200: a public route
        #   curl -i http://127.0.0.1:8080/v1/orders       401: no credential
        #   curl -i -d username=ada -d password=…  http://127.0.0.1:8080/auth/login/password
        #                                                 200: an access token for "Authorization: Bearer …"
        #
        #   martlet check --strict                        every mistake and every warning, as file:line:column
        #   martlet schema > martlet.schema.json          what the first line of this file names, for editors
        #
        # Durations are written 250ms, 10s, 15m, 1h, 30d; sizes 512B, 16KiB, 10MiB. ${VAR} and ${VAR:-default} come from
        # the environment. A secret `x` may be given as `x_file`. Paths are relative to this file.

        version: 1

        server:
          listen:
            - address: 127.0.0.1:8080
              # tls: { certificate_file: cert.pem, key_file: key.pem }

        # Health, metrics and a dashboard. It asks for no credential: keep it off the network.
        admin: { address: 127.0.0.1:9901 }

        log: { level: info }

        # Where sessions are kept. Several instances share a Redis: redis://127.0.0.1:6379/0
        store: { url: "memory:" }

        # Who is who. Several instances share a PostgreSQL: url_file with postgresql://…
        accounts: { url: "sqlite:martlet.db" }

        # How callers can prove who they are.
        providers:
          password: { kind: password, users: accounts }
          # apple: { kind: apple, audiences: [com.example.app] }        # your bundle ids
          # wechat:
          #   kind: wechat
          #   apps:
          #     ios: { variant: mobile, app_id: wx0000000000000001, app_secret_file: wechat-ios.secret }

        # Where requests go. builtin:echo answers with what it received; yours is [http://127.0.0.1:9000].
        upstreams:
          api: { endpoints: ["builtin:echo"] }

        # Which requests go there, and who may send them. The first route that matches wins.
        routes:
          - name: public
            match: { path: /public/** }
            auth: none
            upstream: api

          - name: api
            match: { path: /v1/** }
            auth:
              providers: [password]
              credentials: [session]      # a token of /auth/login/…; direct takes the providers' own credentials too
            # authorize:                  # all conditions must hold, else 403
            #   - { claim: email_verified, equals: true }
            headers:
              set:                        # no client can send these fields itself
                X-User-Id: { attribute: subject }
                X-User-Provider: { attribute: provider }
            upstream: api

        """
}
