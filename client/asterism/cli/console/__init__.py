"""What `asterism console` is made of: a prompt and scripts for statements.

`scanning` splits text into statements and words, `running` asks them and does what colon commands
say, `rendering` prints tables and writes files, `scripts` reads statements from files, `completing`
knows the words that may follow, and `prompting` is the one module that knows prompt_toolkit's
screen. They ask `asterism`'s client only; prompt_toolkit is imported where somebody sits at a
terminal."""
